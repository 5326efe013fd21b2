"""The law of the noise, and what it may not depend on."""

from __future__ import annotations

import itertools
import multiprocessing

import numpy as np
import pytest
from scipy import stats

from voxveil.privacy import LaplaceCube, LaplaceSimplex, PublicNoise, SystemNoise
from voxveil.privacy.noise import laplace_from_words
from voxveil.runtime.errors import PrivacyError


@pytest.mark.parametrize("scale", [0.02, 2.0, 5600.0])
def test_seeded_noise_is_laplace_of_the_stated_scale(scale: float) -> None:
    draws = PublicNoise(1, "law", str(scale)).laplace((200_000,), scale)
    assert stats.kstest(draws, stats.laplace(scale=scale).cdf).pvalue > 1e-3
    # A scale wrong by 3 % would be caught.
    assert stats.kstest(draws, stats.laplace(scale=1.03 * scale).cdf).pvalue < 1e-3


def test_edge_words_give_finite_noise_of_both_signs() -> None:
    edges = [0, 1, 2, 2**11 - 1, 2**11, 2**63 - 1, 2**63, 2**63 + 1, 2**64 - 2, 2**64 - 1]
    noise = laplace_from_words(np.array(edges, np.uint64), 2.0)
    assert np.isfinite(noise).all()
    assert (noise != 0).all()
    assert noise.min() < 0 < noise.max()


@pytest.mark.parametrize("scale", [0.0, -1.0, np.nan, np.inf])
def test_a_scale_that_is_none_is_refused(scale: float) -> None:
    with pytest.raises(PrivacyError, match="scale"):
        PublicNoise(1).laplace((3,), scale)


def streams() -> dict[str, np.ndarray]:
    """Noise of two streams of two utterances, as workers draw it."""
    return dict(map(_draw, _KEYS))


_KEYS = list(itertools.product(("utt1", "utt2"), ("pitch", "content")))


def _draw(key: tuple[str, str]) -> tuple[str, np.ndarray]:
    return "/".join(key), PublicNoise(17, "anonymize", "anon_dp", *key).laplace((20_000,), 1.0)


def test_streams_and_utterances_share_no_noise() -> None:
    drawn = list(streams().values())
    for left, right in itertools.combinations(drawn, 2):
        assert not np.isin(left, right).any()
        assert abs(np.corrcoef(left, right)[0, 1]) < 0.035  # 5 standard errors


def test_noise_does_not_depend_on_workers_or_order() -> None:
    here = streams()
    with multiprocessing.get_context("fork").Pool(2) as pool:
        there = dict(pool.map(_draw, _KEYS[::-1]))
    assert here.keys() == there.keys()
    assert all(np.array_equal(here[key], there[key]) for key in here)


def test_words_of_the_system_are_fresh_and_uniform() -> None:
    words = SystemNoise().words(100_000)
    assert not np.isin(words, SystemNoise().words(100_000)).any()
    octets = np.bincount(words.view(np.uint8), minlength=256)
    assert stats.chisquare(octets).pvalue > 1e-6
    assert not hasattr(SystemNoise(), "laplace")  # no way to float noise on a private value


def test_forked_workers_draw_different_words() -> None:
    with multiprocessing.get_context("fork").Pool(2) as pool:
        first, second = pool.map(_words, range(2), chunksize=1)
    assert not np.isin(first, second).any()


def _words(_: int) -> np.ndarray:
    return SystemNoise().words(1000)


def test_without_a_seed_two_releases_differ_and_with_one_the_release_is_marked() -> None:
    value = np.full((4, 16), 0.5)
    for mechanism in (LaplaceCube(1.0), LaplaceSimplex(1.0)):
        one, two = (mechanism.release(value, SystemNoise()) for _ in range(2))
        assert not np.array_equal(one.value, two.value)
        assert (one.loss.version, one.loss.note) == ("2", "")
        seeded = mechanism.release(value, PublicNoise(1))
        assert np.array_equal(seeded.value, mechanism.release(value, PublicNoise(1)).value)
        assert seeded.loss.version == "1"
        assert "no privacy claim" in seeded.loss.note


def test_the_same_noise_alone_and_in_a_batch() -> None:
    """Noise is keyed by utterance, its scale by the utterance's own frames."""
    values = [np.full((16, frames), 0.5) for frames in (10, 35)]
    mechanism = LaplaceCube(1.0)
    batch = [mechanism.perturb(v, PublicNoise(1, "u", i)) for i, v in enumerate(values)]
    alone = mechanism.perturb(values[1], PublicNoise(1, "u", 1))
    assert np.array_equal(batch[1], alone)
