"""Seeded, disjoint, sex-balanced speaker lists for training and evaluation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations

from voxveil.runtime.errors import InputError
from voxveil.runtime.seeding import stream

__all__ = ["draw_lists", "overlaps"]


def draw_lists(
    sexes: Mapping[str, str],
    counts: Mapping[str, int],
    seed: int,
    *,
    where: str = "corpus",
    shared: bool = False,
) -> dict[str, tuple[str, ...]]:
    """Draw speaker lists, disjoint unless ``shared``.

    Each list takes women and men in turn, so the two sexes differ by at most one speaker;
    where one sex has run out, the other fills up.

    Args:
        sexes: Sex (``F`` or ``M``) of each speaker there is.
        counts: Size of each list, by name. The lists are drawn in this order.
        seed: The run's seed.
        where: The corpus or subset, for messages.
        shared: Each list is drawn from all speakers, so that lists share some.

    Returns:
        Sorted speaker ids by list.

    Raises:
        InputError: There are fewer speakers than the lists need.
    """
    if shared:
        return {
            name: draw_lists(sexes, {name: count}, seed, where=where)[name] for name, count in counts.items()
        }
    needed = sum(counts.values())
    if needed > len(sexes):
        parts = ", ".join(f"{name} {count}" for name, count in counts.items())
        raise InputError(f"{where}: {len(sexes)} usable speakers, {needed} needed ({parts})")
    left = {
        sex: _shuffled([speaker for speaker in sorted(sexes) if sexes[speaker] == sex], seed, sex)
        for sex in ("F", "M")
    }
    lists: dict[str, tuple[str, ...]] = {}
    turn = "F"
    for name, count in counts.items():
        chosen: list[str] = []
        for _ in range(count):
            other = "M" if turn == "F" else "F"
            chosen.append((left[turn] or left[other]).pop())
            turn = other
        lists[name] = tuple(sorted(chosen))
    return lists


def overlaps(lists: Mapping[str, Sequence[str]]) -> list[dict[str, object]]:
    """Return every pair of lists that share speakers: ``{"lists": [a, b], "speakers": n}``."""
    found: list[dict[str, object]] = []
    for first, second in combinations(lists, 2):
        shared = len(set(lists[first]) & set(lists[second]))
        if shared:
            found.append({"lists": [first, second], "speakers": shared})
    return found


def _shuffled(speakers: list[str], seed: int, sex: str) -> list[str]:
    order = stream(seed, "speaker lists", sex).permutation(len(speakers))
    return [speakers[index] for index in order]
