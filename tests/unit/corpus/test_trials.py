"""Enrolment and trials: seeded, same-sex, no utterance on both sides."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from voxveil.corpus.split import Utterance
from voxveil.corpus.trials import draw_trials, read_trials, write_trials
from voxveil.runtime.errors import IncompleteInputError, InputError


def people(speakers: int = 4, each: int = 5) -> list[Utterance]:
    return [
        Utterance(f"{s}-1-{i:04d}", f"{s}", "FM"[s % 2], 16_000) for s in range(speakers) for i in range(each)
    ]


SPEAKER_OF = {u.id: u.speaker for u in people()}
SEX_OF = {u.speaker: u.sex for u in people(40)}


@settings(max_examples=30, deadline=None)
@given(st.integers(4, 12), st.integers(2, 6), st.integers(1, 5), st.integers(0, 99))
def test_lists_keep_their_promises(speakers: int, each: int, enrolled: int, seed: int) -> None:
    if each <= enrolled:
        return
    utterances = people(speakers, each)
    lists = draw_trials(utterances, enrolled, seed)
    held = {item for items in lists.enrolments.values() for item in items}
    assert len(held) == speakers * enrolled
    assert held | set(lists.trial_utterances) == {u.id for u in utterances}
    assert not held & set(lists.trial_utterances)
    assert sum(t.target for t in lists.trials) == speakers * (each - enrolled)
    for trial in lists.trials:
        speaker = trial.utterance.split("-")[0]
        assert trial.target == (speaker == trial.enrolment)
        assert SEX_OF[speaker] == SEX_OF[trial.enrolment]


def test_lists_are_seeded_and_survive_the_disk(tmp_path: Path) -> None:
    lists = draw_trials(people(), 2, 17)
    assert draw_trials(list(reversed(people())), 2, 17) == lists
    assert draw_trials(people(), 2, 18) != lists
    write_trials(tmp_path, lists)
    assert read_trials(tmp_path, SPEAKER_OF) == lists


def test_a_speaker_with_too_few_utterances_is_named() -> None:
    with pytest.raises(InputError, match="speaker 0: 3 utterances, enrolment and trial need 4"):
        draw_trials(people(4, 3), 3, 0)


def test_a_sex_with_one_speaker_is_refused() -> None:
    with pytest.raises(InputError, match="speaker 1: the only one of sex M"):
        draw_trials(people(3), 2, 0)


@pytest.mark.parametrize(
    ("enrol", "trials", "message"),
    [
        (
            "0 0-1-0000\n",
            "0 0-1-0000 target\n",
            r"trials.txt:1: utterance 0-1-0000 is also enrolled \(in 0\)",
        ),
        ("0 0-1-0000\n2 2-1-0001\n", "0 2-1-0001 nontarget\n", "2-1-0001 is also enrolled"),
        ("0 0-1-0000\n", "0 0-1-0001 nontarget\n", "labelled nontarget, its speaker says otherwise"),
        ("0 0-1-0000\n", "0 2-1-0001 target\n", "labelled target"),
        ("0 0-1-0000\n", "0 0-1-0001 yes\n", "must be 'ENROLMENT UTTERANCE target"),
        ("0 0-1-0000\n", "9 0-1-0001 target\n", "enrolment 9 is not in enrol.scp"),
        ("0 0-1-0000\n", "0 0-1-9999 target\n", "utterance 0-1-9999 is not in the split"),
        ("0 0-1-0000\n", "0 0-1-0001 target\n" * 2, "trials.txt:2: trial 0 0-1-0001 is there twice"),
        ("0 0-1-0000 2-1-0000\n", "0 0-1-0001 target\n", "mixes utterances of several speakers"),
        ("0 0-1-0000\n0 0-1-0001\n", "0 0-1-0002 target\n", "enrolment 0 is there twice"),
        ("0 0-1-0000\nx 0-1-0000\n", "0 0-1-0002 target\n", "enrolled twice"),
        ("0\n", "0 0-1-0002 target\n", "enrol.scp:1: must be"),
        ("0 0-1-0000\n", "\n", "no trials"),
    ],
)
def test_wrong_lists_are_refused_by_file_and_line(
    tmp_path: Path, enrol: str, trials: str, message: str
) -> None:
    (tmp_path / "enrol.scp").write_text(enrol)
    (tmp_path / "trials.txt").write_text(trials)
    with pytest.raises(InputError, match=message):
        read_trials(tmp_path, SPEAKER_OF)


def test_absent_lists_are_named(tmp_path: Path) -> None:
    with pytest.raises(IncompleteInputError, match="enrol.scp: no such file"):
        read_trials(tmp_path, SPEAKER_OF)
