"""The unit scale of F0."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from voxveil.features.pitch.scale import F0_MAX, F0_MIN, UNIT_MIN, hz_to_unit, require_f0, unit_to_hz
from voxveil.runtime.errors import InputError


def test_known_points() -> None:
    unit = hz_to_unit(np.array([0.0, 60.0, np.sqrt(60.0 * 400.0), 400.0]))
    assert unit == pytest.approx([0.0, 0.2, 0.6, 1.0], abs=1e-6)
    assert unit.dtype == np.float32


@given(arrays(np.float64, st.integers(1, 20), elements=st.floats(F0_MIN, F0_MAX)))
def test_there_and_back(f0: np.ndarray) -> None:
    assert unit_to_hz(hz_to_unit(f0)) == pytest.approx(f0, rel=1e-5)


@given(arrays(np.float64, st.integers(1, 20), elements=st.floats(0, 20_000)))
def test_every_f0_lands_on_the_scale(f0: np.ndarray) -> None:
    unit = hz_to_unit(f0)
    assert (unit[f0 == 0] == 0).all()
    assert ((unit[f0 > 0] >= UNIT_MIN - 1e-6) & (unit[f0 > 0] <= 1 + 1e-6)).all()


@given(arrays(np.float64, st.integers(1, 20), elements=st.floats(-1e6, 1e6)))
def test_any_decoder_output_is_a_frequency_or_unvoiced(unit: np.ndarray) -> None:
    hz = unit_to_hz(unit)
    voiced = unit >= UNIT_MIN / 2
    assert (hz[~voiced] == 0).all()
    assert ((hz[voiced] >= F0_MIN - 1e-3) & (hz[voiced] <= F0_MAX + 1e-3)).all()


@pytest.mark.parametrize("f0", [np.zeros((2, 3)), np.zeros(0), [100.0, np.nan], [-1.0], [np.inf]])
def test_what_is_no_f0_is_refused_by_name(f0: np.ndarray) -> None:
    with pytest.raises(InputError, match="u1"):
        require_f0(np.asarray(f0), "u1")
