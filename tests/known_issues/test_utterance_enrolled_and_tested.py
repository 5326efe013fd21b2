"""The same utterance sat in enrolment and test.

Seen in https://github.com/speechbrain/speechbrain/issues/1242. Such a trial compares a recording with
itself: it is refused with the utterance's id, wherever lists come from.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from voxveil.cli.main import main
from voxveil.corpus.split import Utterance
from voxveil.corpus.trials import draw_trials, read_trials
from voxveil.runtime.errors import InputError

SPEAKER_OF = {f"{speaker}-1-{n}": speaker for speaker in ("61", "62") for n in range(3)}


def write_lists(folder: Path) -> Path:
    (folder / "enrol.scp").write_text("61 61-1-0 61-1-1\n62 62-1-0\n")
    (folder / "trials.txt").write_text("61 61-1-2 target\n61 61-1-1 target\n61 62-1-1 nontarget\n")
    return folder


def test_own_lists_name_the_utterance(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"trials\.txt:2: utterance 61-1-1 is also enrolled \(in 61\)"):
        read_trials(write_lists(tmp_path), SPEAKER_OF)


def test_evaluate_names_the_utterance(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_lists(tmp_path)
    (tmp_path / "scores.txt").write_text("61 61-1-2 1\n61 61-1-1 1\n61 62-1-1 0\n")
    names = {"scores": "scores.txt", "trials": "trials.txt", "enrolments": "enrol.scp", "json": "out.json"}
    arguments = [f"--{option}={tmp_path / file}" for option, file in names.items()]
    assert main(["evaluate", *arguments]) == 2
    assert "61-1-1 is both enrolled (in 61" in capsys.readouterr().err
    assert not (tmp_path / "out.json").exists()


@pytest.mark.parametrize("seed", range(20))
def test_drawn_lists_have_no_overlap(seed: int) -> None:
    utterances = [Utterance(f"{s}-1-{n}", str(s), "FM"[s % 2], 16_000) for s in range(6) for n in range(5)]
    lists = draw_trials(utterances, 2, seed)
    enrolled = {item for items in lists.enrolments.values() for item in items}
    assert len(enrolled) == 12
    assert not enrolled & set(lists.trial_utterances)
