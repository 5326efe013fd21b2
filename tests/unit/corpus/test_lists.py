"""Speaker lists: disjoint, balanced, seeded."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from voxveil.corpus.lists import draw_lists, overlaps
from voxveil.runtime.errors import InputError

SEXES = {f"{number}": "FM"[number % 2] for number in range(30)}


@given(st.integers(0, 2**32), st.lists(st.integers(0, 7), min_size=1, max_size=4))
def test_lists_are_disjoint_complete_and_balanced(seed: int, sizes: list[int]) -> None:
    lists = draw_lists(SEXES, {f"list{i}": size for i, size in enumerate(sizes)}, seed)
    assert [len(names) for names in lists.values()] == sizes
    members = [name for names in lists.values() for name in names]
    assert len(set(members)) == len(members)
    assert overlaps(lists) == []
    for names in lists.values():
        women = sum(SEXES[name] == "F" for name in names)
        assert abs(2 * women - len(names)) <= 1


def test_a_seed_decides() -> None:
    counts = {"extractor": 8, "pool": 8}
    assert draw_lists(SEXES, counts, 1) == draw_lists(dict(reversed(SEXES.items())), counts, 1)
    assert draw_lists(SEXES, counts, 1) != draw_lists(SEXES, counts, 2)


def test_one_sex_fills_up_for_the_other() -> None:
    sexes = {"a": "F", "b": "M", "c": "M", "d": "M"}
    assert draw_lists(sexes, {"pool": 4}, 0) == {"pool": ("a", "b", "c", "d")}


def test_too_few_speakers_are_refused_with_the_numbers() -> None:
    with pytest.raises(InputError, match=r"30 usable speakers, 31 needed \(pool 20, attacker 11\)"):
        draw_lists(SEXES, {"pool": 20, "attacker": 11}, 0)


def test_an_overlap_is_found() -> None:
    lists = {"extractor": ("a", "b"), "synthesis": ("a", "b"), "pool": ("c",)}
    assert overlaps(lists) == [{"lists": ["extractor", "synthesis"], "speakers": 2}]
