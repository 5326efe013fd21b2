"""The audit passes right mechanisms, catches wrong ones, and says when it cannot tell."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats

from voxveil.cli.main import main
from voxveil.privacy import LaplaceCube, LaplaceSimplex, PublicNoise, Released, SystemNoise
from voxveil.privacy.audit.bounds import ALPHA, Event, _bound, choose_event, largest_bound, ratio_bound
from voxveil.privacy.audit.mechanism_audit import (
    Finding,
    audit_cube,
    audit_neighbours,
    audit_noise,
    audit_simplex,
)
from voxveil.privacy.mechanisms import CUBE_BITS
from voxveil.runtime.errors import InputError
from voxveil.runtime.seeding import stream

RELEASES = 60_000


@pytest.fixture(autouse=True)
def fixed_words(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """The verdicts are statistical; a fixed stream in place of the system's makes them repeatable."""
    generator = stream(7, request.node.name)
    monkeypatch.setattr(
        SystemNoise, "words", lambda _, count: generator.integers(0, 2**64, size=count, dtype=np.uint64)
    )


def verdicts(findings: list[Finding]) -> list[str]:
    return [finding.verdict for finding in findings]


@pytest.mark.parametrize("epsilon", [0.5, 1.0])
def test_right_mechanisms_pass(epsilon: float) -> None:
    findings = [
        *audit_simplex(LaplaceSimplex(epsilon), epsilon, releases=RELEASES),
        *audit_cube(LaplaceCube(epsilon), epsilon, releases=RELEASES),
    ]
    assert verdicts(findings) == ["consistent"] * 5
    bounds = [finding.bound for finding in findings if finding.bound is not None]
    assert all(0.7 * epsilon < bound <= epsilon for bound in bounds)


def test_noise_halved_is_caught_at_1() -> None:
    findings = [
        *audit_simplex(LaplaceSimplex(2.0), 1.0, releases=RELEASES),
        *audit_cube(LaplaceCube(2.0), 1.0, releases=RELEASES),
    ]
    assert verdicts(findings) == ["violation"] * 5


def test_noise_halved_is_caught_at_10_by_a_million_releases() -> None:
    right = audit_cube(LaplaceCube(10.0), 10.0)
    wrong = audit_cube(LaplaceCube(20.0), 10.0)
    assert verdicts(right) == ["consistent"] * 2
    assert verdicts(wrong) == ["violation"] * 2
    assert right[0].bound is not None and 8.5 < right[0].bound < 10.0


def test_a_claim_that_so_many_releases_cannot_refute_is_not_auditable() -> None:
    findings = audit_simplex(LaplaceSimplex(100.0), 100.0, releases=2000)
    assert verdicts(findings) == ["not auditable", "not auditable", "consistent"]
    assert verdicts(audit_simplex(LaplaceSimplex(200.0), 100.0, releases=2000))[2] == "violation"


class WithoutNoise(LaplaceSimplex):
    def release(self, value: np.ndarray, noise: Any) -> Released[Any]:
        """Right noise, but what is released is the value itself."""
        return super().release(value, noise).map(lambda _: value)


def test_a_release_that_leaks_after_the_noise_is_caught() -> None:
    findings = audit_simplex(WithoutNoise(1.0), 1.0, releases=2000)
    assert verdicts(findings)[1] == "violation"


class SharedNoise(LaplaceSimplex):
    def noisy(self, value: np.ndarray, noise: Any) -> np.ndarray:
        """One draw for all entries of a vector: it cancels in differences."""
        return value + super().noisy(np.zeros((len(value), 1)) + 1.0, noise) - 1.0


def test_noise_shared_between_entries_is_caught() -> None:
    finding = audit_simplex(SharedNoise(1.0), 1.0, releases=20_000)[2]
    assert finding.verdict == "violation"
    assert "correlated p = 0" in finding.detail


def test_seeded_float_noise_is_off_the_grid() -> None:
    finding = audit_cube(LaplaceCube(1.0), 1.0, releases=2000, noise=PublicNoise(1))[1]
    assert finding.verdict == "violation"
    assert "NOT on" in finding.detail


@pytest.mark.parametrize("rate", [1e-5, 0.1, 3.0])
def test_the_law_test_accepts_the_exact_law(rate: float) -> None:
    """Epsilon chosen so that one grid step costs ``rate``."""
    epsilon = rate * 2**CUBE_BITS
    from voxveil.privacy.discrete import discrete_laplace, rate_for

    steps = discrete_laplace(80_000, rate_for(epsilon, 2**CUBE_BITS), SystemNoise().words)
    added = np.ldexp(steps.astype(float), -CUBE_BITS).reshape(-1, 8)
    assert audit_noise("x", epsilon, added, 1.0, CUBE_BITS).verdict == "consistent"
    assert audit_noise("x", epsilon * 1.1, added, 1.0, CUBE_BITS).verdict == "violation"


@pytest.mark.parametrize(("hits", "alarms"), [(0, 0), (50, 3), (100, 0), (7, 100), (100, 100)])
def test_the_bound_is_clopper_and_pearson_by_the_book(hits: int, alarms: int) -> None:
    low = stats.binomtest(hits, 100).proportion_ci(1 - ALPHA, "exact").low
    high = stats.binomtest(alarms, 100).proportion_ci(1 - ALPHA, "exact").high
    expected = math.log(low) - math.log(high) if low > 0 else -math.inf
    bound = _bound(np.array([hits]), 100, np.array([alarms]), 100, ALPHA)[0]
    assert bound == pytest.approx(expected)


def test_the_bound_covers_the_truth() -> None:
    """At alpha = 0.2 a true ratio is missed in at most a fifth of the runs."""
    rng = np.random.default_rng(1)
    missed = 0
    for _ in range(400):
        first, second = rng.random(300), rng.random(300)
        event = Event(0.5, True, True)
        missed += ratio_bound(
            np.where(first < 0.6, 1.0, 0.0), np.where(second < 0.3, 1.0, 0.0), event, 0.2
        ) > math.log(2)
    assert missed <= 80


def test_events_are_found_on_either_side() -> None:
    rng = np.random.default_rng(2)
    low, high = rng.normal(0, 1, 5000), rng.normal(0, 1, 5000)
    high[:500] += 20
    event = choose_event(low, high)
    assert not event.first and event.above and event.threshold > 5
    low[:500] -= 20
    assert ratio_bound(low, high, choose_event(low, high)) > 3


def test_too_few_releases_are_refused() -> None:
    with pytest.raises(InputError, match="at least 100"):
        audit_simplex(LaplaceSimplex(1.0), 1.0, releases=10)
    with pytest.raises(InputError, match="at least one"):
        largest_bound(0)


def test_identical_neighbours_bound_nothing() -> None:
    rng = np.random.default_rng(3)
    finding = audit_neighbours(
        "x", "same", 0.1, lambda n: rng.normal(size=n), lambda n: rng.normal(size=n), 2000
    )
    assert finding.verdict == "consistent" and finding.bound is not None and finding.bound < 0


def test_the_command_prints_and_writes_its_findings(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "audit.json"
    assert main(["audit", "mechanisms", "--epsilon", "1", "--releases", "4000", "--json", str(out)]) == 0
    findings = json.loads(out.read_text())["findings"]
    assert [finding["verdict"] for finding in findings] == ["consistent"] * 13
    assert capsys.readouterr().out.count("consistent") == 13


def test_the_command_audits_the_variants_of_a_params_file(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    params = str(root / "params.yaml")
    assert main(["audit", "mechanisms", "--params", params, "--releases", "2000"]) == 0
    assert "laplace_cube" in capsys.readouterr().out
    assert main(["audit", "mechanisms", "--params", params, "--epsilon", "1"]) == 2


def test_a_rho_is_a_claim_of_its_own(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert main(["audit", "mechanisms", "--rho", "0.5", "--releases", "4000"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 3 and all(line.startswith("gaussian_l2") for line in lines)
    assert "rho 0.5 at delta 0.01" in lines[0]
    assert main(["audit", "mechanisms", "--rho", "0.5", "--params", str(tmp_path / "params.yaml")]) == 2
    assert "--epsilon and --rho are not allowed beside it" in capsys.readouterr().err
