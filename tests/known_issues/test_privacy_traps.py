"""What other people's differential privacy got wrong, held against ours from end to end.

Where a trap has its tests beside the code, they are named here. Reachable low bits (``test_mechanisms.py``:
test_releases_of_0_and_of_1_reach_the_same_values and
test_every_secret_release_is_a_multiple_of_one_fixed_power_of_two). Edge uniforms (``test_noise.py``:
test_edge_words_give_finite_noise_of_both_signs; ``test_discrete.py``: test_edge_words_end_and_give_integers).
Noise shared between streams, utterances or workers (``test_noise.py``:
test_streams_and_utterances_share_no_noise, test_noise_does_not_depend_on_workers_or_order,
test_forked_workers_draw_different_words). A default seed (``test_noise.py``:
test_without_a_seed_two_releases_differ_and_with_one_the_release_is_marked).
"""

from __future__ import annotations

import hashlib
import json
import math
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from voxveil.cli.main import main
from voxveil.config import parse_params
from voxveil.privacy import (
    Entry,
    GaussianSphere,
    Identity,
    LaplaceBall,
    LaplaceCube,
    LaplaceSimplex,
    Ledger,
    SystemNoise,
    norm1,
    norm2,
)
from voxveil.privacy.audit.bounds import choose_event, largest_bound, ratio_bound
from voxveil.privacy.register import FolderRegister
from voxveil.runtime.errors import ParamsError, PrivacyError

SIZE = 256


def test_an_l2_bound_is_never_taken_for_an_l1_bound() -> None:
    """Unit vectors in L2 lie up to 2 sqrt(d) apart in L1: none gets Laplace noise made for 2."""
    flat = np.full((1, SIZE), 1.0)
    spread = norm2(flat)
    assert np.abs(spread).sum() == pytest.approx(math.sqrt(SIZE))
    # The Laplace mechanisms draw them back onto the L1 ball first: what is noisy has L1 norm 1, not 16.
    many = np.tile(spread, (2000, 1))
    assert LaplaceSimplex(50.0).noisy(many, SystemNoise()).mean() * SIZE == pytest.approx(1.0, abs=0.15)
    ball = np.stack([LaplaceBall(50.0).perturb(spread[0], SystemNoise()) for _ in range(3000)])
    assert ball.mean() * SIZE == pytest.approx(1.0, abs=0.1)
    # Their sensitivity is of L1, the Gaussian's of L2, and each says so by its measure.
    assert np.abs(norm1(flat) - norm1(-flat)).sum() == 2.0
    assert LaplaceSimplex(1.0).loss_for((1, SIZE)).sensitivity == 2.0
    gaussian = GaussianSphere(0.5).loss_for((1, SIZE))
    assert (gaussian.measure, gaussian.sensitivity) == ("zcdp", 2.0)
    assert np.linalg.norm(norm2(flat) - norm2(-flat)) == pytest.approx(2.0)


def test_the_gaussian_keeps_its_root() -> None:
    """sigma = Delta_2 / sqrt(2 rho), and rho adds over entries without a factor of the dimension."""
    for size in (2, SIZE):
        value = np.zeros((20_000 // size, size))
        added = GaussianSphere(2.0).noisy(value, SystemNoise()) - norm2(value)
        assert stats.kstest(added.ravel(), stats.norm(scale=2.0 / math.sqrt(2 * 2.0)).cdf).pvalue > 1e-6


@pytest.fixture
def register(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FolderRegister:
    monkeypatch.setenv("VOXVEIL_LEDGER", str(tmp_path / "register"))
    return FolderRegister(tmp_path / "register")


def announce(register: FolderRegister, content: object, vectors: int = 1) -> None:
    losses = {"pitch": LaplaceCube(1.0).loss_for((4, vectors)), "content": content.loss_for((vectors, 8))}  # type: ignore[attr-defined]
    entry = Entry("a.wav", hashlib.sha256(b"a").hexdigest(), vectors, losses, "61")
    Ledger.open(purpose="release", system="anon_dp", register=register).announce([entry])


def totals(capsys: pytest.CaptureFixture[str]) -> dict[str, object]:
    assert main(["ledger", "total", "--json"]) == 0
    (total,) = json.loads(capsys.readouterr().out)["utterances"]
    return dict(total)


def test_budgets_add_over_streams_and_over_releases(
    register: FolderRegister, capsys: pytest.CaptureFixture[str]
) -> None:
    """Pitch at 1 and a vector at 2 cost 3, released twice 6; a per-vector figure is no utterance total."""
    announce(register, LaplaceSimplex(2.0))
    assert totals(capsys)["epsilon"] == 3.0
    announce(register, LaplaceSimplex(2.0))
    assert totals(capsys)["epsilon"] == 6.0
    announce(register, LaplaceSimplex(2.0), vectors=100)
    assert totals(capsys)["epsilon"] == 6.0 + 1.0 + 100 * 2.0


def test_budgets_of_two_measures_never_share_a_column(
    register: FolderRegister, capsys: pytest.CaptureFixture[str]
) -> None:
    announce(register, LaplaceSimplex(2.0), vectors=100)
    assert (totals(capsys)["epsilon"], totals(capsys)["rho"]) == (201.0, None)
    announce(register, GaussianSphere(0.01), vectors=100)
    total = totals(capsys)
    assert total["epsilon"] == "inf"
    # By stream and vector: pitch 1 / 2 twice, content 100 x 2^2 / 2 and 100 x 0.01.
    assert total["rho"] == pytest.approx(0.5 + 200.0 + 0.5 + 1.0)
    assert isinstance(total["epsilon_delta"], float) and total["epsilon_delta"] > total["rho"]
    for action in ("total", "show"):
        assert main(["ledger", action]) == 0
        text = capsys.readouterr().out
        assert "none (zCDP)" in text
    announce(register, Identity("vector"), vectors=100)
    total = totals(capsys)
    assert (total["epsilon"], total["rho"], total["epsilon_delta"]) == ("inf", "inf", "inf")
    assert main(["ledger", "total"]) == 0
    assert "unbounded" in capsys.readouterr().out


@pytest.mark.parametrize("epsilon", [0, -1, math.nan, "one", True, None])
def test_an_epsilon_that_is_none_never_gets_in(epsilon: object) -> None:
    with pytest.raises(PrivacyError, match="epsilon must be"):
        LaplaceSimplex(epsilon)  # type: ignore[arg-type]
    with pytest.raises(ParamsError, match=r"content_variants\.v\.epsilon"):
        parse_params({"content_variants": {"v": {"mechanism": "laplace", "epsilon": epsilon}}})


def test_a_very_large_epsilon_is_allowed_and_no_noise_is_spelt_out() -> None:
    large = LaplaceSimplex(1e6).release(np.eye(4), SystemNoise()).loss
    assert large.epsilon == 1e6 and not large.unbounded
    none = Identity("vector").release(np.eye(4), SystemNoise()).loss
    assert none.unbounded and none.to_json()["epsilon"] == "inf" and "no noise" in none.note
    with pytest.raises(PrivacyError, match="no noise, which is spelt 'identity'"):
        LaplaceSimplex(1e13).release(np.eye(4), SystemNoise())


def test_perfect_counts_of_an_attack_bound_epsilon_and_do_not_break_it() -> None:
    """Every hit and no false alarm: a finite bound, which no number of trials turns into infinity."""
    first, second = np.ones(1000), np.zeros(1000)
    event = choose_event(first, second)
    bound = ratio_bound(first, second, event)
    assert math.isfinite(bound) and bound == pytest.approx(largest_bound(1000))
    assert largest_bound(10) < bound < largest_bound(1_000_000) < 14
