"""The audit passes randomized response and catches one with half the noise."""

from __future__ import annotations

import pytest

from voxveil.privacy import RandomizedResponse
from voxveil.privacy.audit.response_audit import audit_response


@pytest.mark.parametrize("epsilon", [0.5, 1.0, 6.0])
def test_a_right_mechanism_passes(epsilon: float) -> None:
    findings = audit_response(RandomizedResponse(epsilon), epsilon, releases=60_000)
    assert [f.verdict for f in findings] == ["consistent"] * 3
    bound = findings[0].bound
    assert bound is not None and bound < epsilon


@pytest.mark.parametrize("epsilon", [1.0, 3.0])
def test_twice_the_epsilon_is_caught(epsilon: float) -> None:
    findings = audit_response(RandomizedResponse(2 * epsilon), epsilon, releases=60_000)
    assert [f.verdict for f in findings] == ["violation"] * 3


def test_a_large_claim_is_not_auditable() -> None:
    findings = audit_response(RandomizedResponse(30.0), 30.0, releases=10_000)
    assert [f.verdict for f in findings[:2]] == ["not auditable"] * 2
