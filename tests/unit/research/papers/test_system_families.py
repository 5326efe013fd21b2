"""A system's place in the paper: by which stream has noise, whatever the noise is called."""

from __future__ import annotations

import math

import pytest

from voxveil.research.papers.families import _placed

LAPLACE = {"epsilon": 10.0, "mechanism": "laplace_l1"}
NONE = {"epsilon": "inf", "mechanism": "identity"}
GAUSSIAN = {"epsilon": "inf", "mechanism": "gaussian_l2", "rho": 0.5}


def summary(pitch: dict, content: dict, converted: bool = False) -> dict:
    return {
        "system": "mine",
        "kind": "anonymized",
        "promise": {"streams": {"pitch": pitch, "content": content}},
        "composition": {"pitch_conversion": converted},
    }


@pytest.mark.parametrize(
    ("pitch", "content", "family", "epsilon"),
    [
        (NONE, NONE, "Anon", math.nan),
        (LAPLACE, NONE, "Anon+DP_Pitch", 10.0),
        (NONE, LAPLACE, "Anon+DP_BN", 10.0),
        (LAPLACE, LAPLACE, "Anon+DP", 10.0),
        (LAPLACE, {**LAPLACE, "epsilon": 3.0}, "Anon+DP", math.nan),
        (NONE, GAUSSIAN, "Anon+DP_BN, zCDP", math.nan),
        (LAPLACE, GAUSSIAN, "Anon+DP, zCDP", math.nan),
    ],
)
def test_a_family_is_named_by_the_streams_with_noise(
    pitch: dict, content: dict, family: str, epsilon: float
) -> None:
    placed = _placed(summary(pitch, content), {})
    assert placed.family == family
    assert placed.epsilon == pytest.approx(epsilon, nan_ok=True)


def test_pitch_conversion_is_its_own_family() -> None:
    assert _placed(summary(NONE, NONE, converted=True), {}).family == "Anon+PC"
