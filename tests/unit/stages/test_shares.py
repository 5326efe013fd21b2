"""A share of a stage's work: which items are whose."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from voxveil.config import parse_params
from voxveil.runtime.atomic import read_json
from voxveil.runtime.errors import InputError, ParamsError
from voxveil.stages.context import PART, Share, StageContext

SIZES = st.dictionaries(
    st.text("abc0-", min_size=1, max_size=6), st.integers(1, 10_000), min_size=1, max_size=40
)


def shares(sizes: dict[str, int], count: int) -> list[frozenset[str]]:
    return [Share(number, count).of(sizes, "here") for number in range(1, count + 1)]


@given(SIZES, st.integers(1, 40), st.randoms(use_true_random=False))
def test_every_item_is_in_one_share_and_loads_are_even(
    sizes: dict[str, int], count: int, random: object
) -> None:
    count = min(count, len(sizes))
    made = shares(sizes, count)
    assert sorted(item for share in made for item in share) == sorted(sizes)
    assert all(made)
    loads = [sum(sizes[item] for item in share) for share in made]
    assert max(loads) - min(loads) <= max(sizes.values())
    items = list(sizes.items())
    random.shuffle(items)  # type: ignore[attr-defined]
    assert shares(dict(items), count) == made


def test_the_largest_first_to_who_has_least() -> None:
    sizes = {"a": 5, "b": 9, "c": 5, "d": 1, "e": 4}
    assert shares(sizes, 3) == [{"b"}, {"a", "e"}, {"c", "d"}]
    assert shares(sizes, 1) == [set(sizes)]


def test_fewer_items_than_shares_are_refused() -> None:
    with pytest.raises(InputError, match="the split: 2 utterances are too few for 3 shares"):
        Share(1, 3).of({"a": 1, "b": 1}, "the split")


def test_a_share_is_read_as_it_is_written() -> None:
    assert Share.parse("2-of-3") == Share(2, 3)
    assert str(Share(2, 3)) == "2-of-3"
    assert Share() == Share.parse("1-of-1")


@pytest.mark.parametrize(
    "text", ["", "2", "0-of-3", "4-of-3", "2/3", "2-of-03", "2-of-3 ", "-1-of-3", "2-of-99999"]
)
def test_what_is_no_share_is_refused(text: str) -> None:
    with pytest.raises(InputError, match=r"share: must be NUMBER-of-COUNT, e\.g\. 2-of-3, got"):
        Share.parse(text)


def test_only_a_share_says_what_it_holds(tmp_path: Path) -> None:
    def context(share: Share) -> StageContext:
        return StageContext("s", "k", parse_params({}), {}, {"out": tmp_path}, tmp_path, "", share=share)

    context(Share()).mark_part("out", ["b", "a"], {"a"})
    assert not (tmp_path / PART).exists()
    context(Share(1, 2)).mark_part("out", ["b", "a"], {"a"})
    assert read_json(tmp_path / PART) == {"format": 1, "of": 2, "places": {"a": 1}}


@pytest.mark.parametrize(
    ("name", "value", "allowed"),
    [
        ("anonymize_shards", 0, "at least 1"),
        ("anonymize_shards", 501, "at most 500"),
        ("score_shards", 4, "at most 3"),
        ("parallel", -1, "at least 0"),
    ],
)
def test_counts_have_bounds(name: str, value: int, allowed: str) -> None:
    with pytest.raises(ParamsError, match=f"cluster.{name}: must be {allowed}, got {value}"):
        parse_params({"cluster": {name: value}})
