"""The phone table and how espeak-ng's events become phones."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from voxveil.corpus.phones import _ESPEAK, PHONES, phones_from_espeak
from voxveil.corpus.split import Phone
from voxveil.runtime.errors import InputError


def test_the_set_is_cmudict_and_silence() -> None:
    assert len(PHONES) == len(set(PHONES)) == 40
    assert PHONES[0] == "SIL"
    assert {label for labels in _ESPEAK.values() for label in labels.split()} == set(PHONES)


def test_events_become_phones_without_gaps() -> None:
    events = [(0.1, "s"), (0.2, "'A@"), (0.4, "t#"), (0.5, "_:"), (0.6, "_")]
    assert phones_from_espeak(events, 0.8, "u") == [
        Phone(0.0, 0.1, "SIL"),
        Phone(0.1, pytest.approx(0.1), "S"),
        Phone(0.2, pytest.approx(0.1), "AA"),
        Phone(pytest.approx(0.3), pytest.approx(0.1), "R"),
        Phone(0.4, pytest.approx(0.1), "T"),
        Phone(0.5, pytest.approx(0.3), "SIL"),
    ]


def test_marks_without_time_and_equal_neighbours_merge() -> None:
    events = [(0.0, "i:"), (0.1, ";"), (0.2, "e@"), (0.4, "r")]
    assert [p.label for p in phones_from_espeak(events, 0.5, "u")] == ["IY", "EH", "R"]


def test_an_unknown_phoneme_is_named() -> None:
    with pytest.raises(InputError, match=r"utterance 7-1-0: .*'x'"):
        phones_from_espeak([(0.0, "x")], 1.0, "7-1-0")


@given(
    st.lists(st.tuples(st.floats(0, 5), st.sampled_from(sorted(_ESPEAK))), min_size=1, max_size=30),
    st.floats(5.0, 9.0),
)
def test_phones_tile_the_utterance(events: list[tuple[float, str]], seconds: float) -> None:
    phones = phones_from_espeak(sorted(events), seconds, "u")
    assert phones[0].start == 0
    assert phones[-1].start + phones[-1].seconds == pytest.approx(seconds)
    for before, after in zip(phones, phones[1:]):
        assert before.start + before.seconds == pytest.approx(after.start)
        assert before.label != after.label
    assert all(phone.seconds > 0 for phone in phones)
