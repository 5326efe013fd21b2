"""Two runs that brought a new dataset at once: the server refused the slower, and it stayed unsent."""

from __future__ import annotations

from typing import Any

import pytest

from voxveil.tracking.publish import send

REFUSED = (
    "(psycopg2.errors.UniqueViolation) duplicate key value violates unique constraint "
    '"dataset_pk" DETAIL: Key (experiment_id, name, digest)=(3, embedded, 0f0f) already exists.'
)


class Server:
    """MLflow's store as its first lookups see it: another run's dataset is not there yet, then it is."""

    def __init__(self, refusals: list[str]) -> None:
        self.refusals = refusals
        self.logged: list[tuple[str, list[Any]]] = []

    def log_inputs(self, run_id: str, datasets: list[Any]) -> None:
        from mlflow.exceptions import MlflowException

        if self.refusals:
            raise MlflowException(self.refusals.pop(0))
        self.logged.append((run_id, datasets))


@pytest.fixture(autouse=True)
def no_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(send.time, "sleep", lambda seconds: None)


@pytest.mark.parametrize("words", [REFUSED, "UNIQUE constraint failed: datasets.name", "Duplicate entry"])
def test_the_slower_run_finds_the_dataset_at_its_next_attempt(words: str) -> None:
    server = Server([words, words])
    send._log_input(server, "run", "dataset")
    assert server.logged == [("run", ["dataset"])]


def test_any_other_refusal_is_said_at_once() -> None:
    from mlflow.exceptions import MlflowException

    server = Server(["the run is deleted", "never asked for"])
    with pytest.raises(MlflowException, match="the run is deleted"):
        send._log_input(server, "run", "dataset")
    assert server.refusals == ["never asked for"]


def test_a_key_that_stays_taken_is_an_error() -> None:
    from mlflow.exceptions import MlflowException

    server = Server([REFUSED] * 20)
    with pytest.raises(MlflowException, match="duplicate key"):
        send._log_input(server, "run", "dataset")
    assert len(server.refusals) == 15
