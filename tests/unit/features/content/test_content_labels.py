"""Phone labels on the frame grid."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.made_phones import write_phone_split

from voxveil.corpus.split import Phone, Split
from voxveil.features.content.labels import frame_labels, require_phones
from voxveil.runtime.errors import IncompleteInputError, InputError

SET = ("SIL", "A", "B")


def slow_labels(phones: list[Phone], frames: int) -> list[int]:
    result = []
    for k in range(frames):
        inside = [p for p in phones if p.start - 1e-6 <= 0.01 * k < p.start + p.seconds - 1e-6]
        result.append(SET.index(inside[-1].label) if inside else 0)
    return result


@given(
    st.lists(st.tuples(st.integers(0, 12), st.integers(0, 40), st.sampled_from(SET)), max_size=8),
    st.integers(1, 120),
)
def test_a_frame_has_the_phone_at_its_centre(parts: list[tuple[int, int, str]], frames: int) -> None:
    phones, start = [], 0.0
    for gap, length, label in parts:
        start += gap / 250
        phones.append(Phone(start, length / 250, label))
        start += length / 250
    assert frame_labels(phones, frames, SET, "u").tolist() == slow_labels(phones, frames)


def test_wrong_phones_are_named() -> None:
    with pytest.raises(InputError, match=r"utterance u7: phone 'Q'"):
        frame_labels([Phone(0, 1, "Q")], 10, SET, "u7")
    with pytest.raises(InputError, match=r"utterance u7: .*after"):
        frame_labels([Phone(1, 1, "A"), Phone(0, 1, "B")], 10, SET, "u7")


def test_a_corpus_without_phones_stops_in_one_line(tmp_path: Path) -> None:
    write_phone_split(tmp_path / "with", range(1), 1)
    write_phone_split(tmp_path / "without", range(1), 1, phones=False)
    require_phones(Split(tmp_path / "with"), "train-content")
    with pytest.raises(IncompleteInputError, match=r"no phone timing, and train-content needs it") as error:
        require_phones(Split(tmp_path / "without"), "train-content")
    assert "\n" not in str(error.value)
