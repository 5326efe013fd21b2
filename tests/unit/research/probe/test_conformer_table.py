"""U_ASR by the conformer: the table, what is kept of it, and the fault of the set-up that stops it."""

from __future__ import annotations

import json
from dataclasses import asdict, replace
from pathlib import Path

import pytest

pytest.importorskip("torch")
pytestmark = pytest.mark.torch

from made_dictation import TINY, write_dictation
from made_phones import write_params
from voxveil.cli.main import main
from voxveil.runtime.done import DONE, finish, require_done

PUBLIC, PRIVATE = range(2), range(2, 4)


@pytest.fixture(scope="module")
def outputs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("dictated")
    made = folder / "anonymize/anon"
    for flip, public, private in (
        (False, folder / "prepare/public/attacker", folder / "prepare/private/private"),
        (True, made / "attacker", made / "released"),
    ):
        write_dictation(public, PUBLIC, 2, flip=flip)
        write_dictation(private, PRIVATE, 1, flip=flip)
    for side in ("public", "private"):
        finish(folder / "prepare" / side, "prepare", None)
    for side in ("attacker", "released"):
        finish(made / side, "anonymize", "anon", side)
    return folder


def params_file(path: Path, **changes: float) -> Path:
    small = replace(TINY, beam=2)
    return write_params(path, asr=asdict(small), probe={"largest_errors": 100, **changes})


@pytest.fixture(autouse=True)
def checkpoints(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("VOXVEIL_CHECKPOINTS", str(tmp_path / "checkpoints"))
    return tmp_path / "checkpoints"


def measure(outputs: Path, params: Path, out: Path, *more: str) -> int:
    places = [f"--outputs={outputs}", f"--params={params}", f"--out={out}"]
    return main(["probe", "utility", "--system=anon", "--recognizer=conformer", *places, *more])


def test_the_table_and_what_is_kept(
    outputs: Path, tmp_path: Path, checkpoints: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    params, out = params_file(tmp_path / "params.yaml"), tmp_path / "out"
    assert measure(outputs, params, out) == 0
    found = json.loads((out / "u_asr.json").read_text())
    assert [(cell["trained"], cell["heard"]) for cell in found["cells"]] == [
        (trained, heard) for trained in ("original", "anonymized") for heard in ("original", "anonymized")
    ]
    for cell in found["cells"]:
        words = cell["words"]
        assert cell["phones"] is None
        assert words["u_asr"] == pytest.approx(100 - words["value"])
        assert (words["speakers"], words["utterances"], words["reference"]) == (2, 2, 8)
        low, high = words["u_asr_ci95"]
        assert low <= words["u_asr"] <= high
    assert found["recognizer"].startswith("conformer: SpeechBrain")
    assert "lower case" in found["normalisation"]
    assert found["training"]["anonymized"]["utterances"] == 4
    require_done(out, "u_asr")
    shown = capsys.readouterr().out
    assert shown.startswith("U_ASR by words")
    assert "Recognizer: conformer" in shown

    kept = {path.name.partition("-")[0]: path for path in (out / "recognizers").iterdir()}
    assert set(kept) == {"original", "anonymized"}
    assert {"model.json", "model.safetensors", "curve.csv", DONE} <= {
        path.name for path in kept["original"].iterdir()
    }
    assert not list(checkpoints.glob("*/*"))
    times = {path: (path / "model.safetensors").stat().st_mtime_ns for path in kept.values()}
    # Another beam hears anew with the same recognizers.
    again = params_file(tmp_path / "again.yaml")
    again.write_text(again.read_text().replace("beam: 2", "beam: 0"))
    assert measure(outputs, again, out) == 0
    assert "greedy CTC" in json.loads((out / "u_asr.json").read_text())["recognizer"]
    assert {path: (path / "model.safetensors").stat().st_mtime_ns for path in times} == times
    assert len(list((out / "recognizers").iterdir())) == 2
    require_done(out, "u_asr")


def test_original_speech_not_understood_stops_before_anonymized_is_trained_on(
    outputs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    params = params_file(tmp_path / "params.yaml", largest_errors=20)
    assert measure(outputs, params, tmp_path / "out") == 2
    lines = capsys.readouterr().err.splitlines()
    assert lines[-1].startswith("voxveil: error: probe utility: ")
    assert (
        "in words of original speech by what was trained on it; above 20 % (probe.largest_errors)"
        in lines[-1]
    )
    assert not any("asr[anonymized]" in line for line in lines)
    assert [path.name.partition("-")[0] for path in (tmp_path / "out/recognizers").iterdir()] == ["original"]
    assert not (tmp_path / "out/u_asr.json").exists()


def test_speech_without_transcripts_is_refused(
    outputs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    import shutil

    bare = tmp_path / "outputs"
    shutil.copytree(outputs, bare)
    shutil.rmtree(bare / "prepare")
    write_dictation(bare / "prepare/public/attacker", PUBLIC, 2, flip=True)
    write_dictation(bare / "prepare/private/private", PRIVATE, 1)
    for side in ("public", "private"):
        finish(bare / "prepare" / side, "prepare", None)
    assert measure(bare, params_file(tmp_path / "params.yaml"), tmp_path / "out") == 2
    assert "attacker: no transcripts; U_ASR of words needs them" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()
