"""Names beside what they name."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from voxveil.research.papers.figures import spread

GAP = 1.0


@given(st.lists(st.floats(-50, 50), max_size=12))
def test_names_stand_apart_in_the_order_of_their_values(values: list[float]) -> None:
    places = spread(values, GAP)
    ordered = sorted(range(len(values)), key=lambda index: (values[index], index))
    assert all(
        places[after] - places[before] >= GAP - 1e-9
        for before, after in zip(ordered, ordered[1:], strict=False)
    )
    assert sum(places) == pytest.approx(sum(values), abs=1e-6)


@pytest.mark.parametrize(
    ("values", "places"),
    [
        ([], []),
        ([3.0], [3.0]),
        ([5.0, 1.0], [5.0, 1.0]),
        ([2.0, 2.0], [1.5, 2.5]),
        # Two that touch push a third, and all three stand around their mean.
        ([0.0, 0.2, 1.0], [-0.6, 0.4, 1.4]),
    ],
)
def test_a_name_stands_at_its_value_where_there_is_room(values: list[float], places: list[float]) -> None:
    assert spread(values, GAP) == pytest.approx(places)
