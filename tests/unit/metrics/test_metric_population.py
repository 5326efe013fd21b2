"""Numbers of speakers, single speakers, and ranks from embeddings."""

from __future__ import annotations

import metric_oracles as oracle
import numpy as np
import pytest
from metric_reference import arrays

from voxveil.metrics import betabinomial, population
from voxveil.metrics.data import RankSet
from voxveil.metrics.disclosure import format_speakers, mean_disclosure, speaker_table
from voxveil.metrics.ranks import rank_embeddings, rank_inputs
from voxveil.runtime.errors import InputError

SIZES = np.array([10**3, 10**5, 10**7])


def rank40():
    data = arrays("rank40")
    return RankSet.from_labels(data["scores"], data["input_labels"], data["reference_labels"])


@pytest.mark.parametrize(("alpha", "beta"), [(0.35, 2.4), (0.8, 1.2), (1.0, 1.0), (2.0, 5.0)])
def test_identification_tends_to_its_power_law(alpha, beta):
    ratio = population.predicted_identification(alpha, beta, SIZES) / oracle.asymptotic_identification(
        alpha, beta, SIZES
    )
    assert abs(ratio - 1)[-1] < 1e-5
    assert np.all(np.diff(abs(ratio - 1)) <= 1e-6)


@pytest.mark.parametrize(("alpha", "beta"), [(0.35, 2.4), (1.0, 1.0), (2.0, 5.0)])
def test_mean_disclosure_tends_to_the_divergence(alpha, beta):
    limit = oracle.disclosure_limit(alpha, beta)
    got = population.predicted_disclosure(alpha, beta, np.array([100, 10_000, 200_000]))
    assert got[-1] == pytest.approx(limit, abs=0.05)
    assert abs(got[-1] - limit) <= abs(got[0] - limit) / 3 + 1e-6
    from scipy import integrate, stats

    law = stats.beta(alpha, beta)
    area, _ = integrate.quad(lambda p: law.pdf(p) * law.logpdf(p) / np.log(2), 0, 1, limit=200)
    assert limit == pytest.approx(area, abs=1e-6)


@pytest.mark.parametrize("fitted_at", [10, 20])
def test_prediction_of_40_speakers_from_fewer(fitted_at):
    histogram = rank_inputs(rank40()).histogram()
    fits = betabinomial.fit_betabinomial(population.subsampled_histogram(histogram, fitted_at)[None])
    at = np.array([40])
    rate = population.predicted_identification(fits.alpha[0], fits.beta[0], at)[0]
    bits = population.predicted_disclosure(fits.alpha[0], fits.beta[0], at)[0]
    gamma = histogram / histogram.sum()
    assert rate == pytest.approx(gamma[0], abs=0.05)  # measured 0.3325 of 400 inputs, standard error 0.024
    assert bits == pytest.approx(float(mean_disclosure(gamma)), abs=0.2)


def test_curve_and_its_assumption_free_band():
    histogram = rank_inputs(rank40()).histogram()
    curve = population.population_curve(histogram, largest=100_000)
    assert curve.sizes[0] == 2 and curve.sizes[-1] == 100_000 and 40 in curve.sizes
    known = curve.sizes <= 40
    assert np.all(np.diff(curve.identification[known]) < 0)
    assert curve.identification[curve.sizes == 40][0] == pytest.approx(0.3325)
    assert np.isnan(curve.identification[~known]).all()
    assert (curve.upper[~known] == 0.3325).all()
    assert curve.identification_bb is not None and (curve.identification_bb[~known] <= 0.36).all()
    certain = population.population_curve(np.array([9.0, 0, 0, 0]))
    assert certain.identification_bb is None and certain.identification[0] == 1


def test_speaker_rows_add_up_to_the_averages():
    given = rank40()
    rows = speaker_table(given)
    gamma = rank_inputs(given).histogram() / 400
    assert sum(r.n_inputs for r in rows) == 400
    assert np.average(
        [r.identification_rate for r in rows], weights=[r.n_inputs for r in rows]
    ) == pytest.approx(33.25)
    assert np.average([r.disclosure for r in rows]) == pytest.approx(float(mean_disclosure(gamma)))
    assert rows[0].identification_rate == max(r.identification_rate for r in rows)
    text = format_speakers(rows)
    assert text.count("\n") == 41 and text.startswith("speaker\t")


def test_one_exposed_speaker_is_on_top():
    rng = np.random.default_rng(0)
    labels = np.repeat(np.arange(20), 10)
    scores = rng.normal(size=(200, 20))
    scores[labels == 7, 7] += 50
    rows = speaker_table(RankSet.from_labels(scores, labels, np.arange(20)))
    assert rows[0].speaker == "7" and rows[0].identification_rate == 100 and rows[0].best_rank == 1
    assert rows[1].identification_rate < 60


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_ranks_from_embeddings(dtype, monkeypatch):
    monkeypatch.setattr("voxveil.metrics.ranks._BLOCK_ENTRIES", 50)  # several blocks
    rng = np.random.default_rng(1)
    references = rng.normal(size=(15, 8)).astype(dtype)
    references[4] = references[3]  # twins: a tie for both
    own = rng.integers(0, 15, 40)
    inputs = (references[own] + rng.normal(size=(40, 8)).astype(dtype)).astype(dtype)
    names = [f"s{j}" for j in range(15)]
    found = rank_embeddings(inputs, references, [names[j] for j in own], names)

    unit = [v / np.linalg.norm(v) for v in references.astype(float)]
    rows = [[float(x @ u) / np.linalg.norm(x) for u in unit] for x in inputs.astype(float)]
    rows = [[round(s, 5) for s in row] for row in rows]
    assert found.histogram() == pytest.approx(oracle.rank_weights(rows, own), abs=1e-9)
    assert found.n_tied == np.count_nonzero((own == 3) | (own == 4))


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"inputs": np.zeros((2, 3))}, "inputs[0] is zero"),
        ({"references": np.array([[1.0, np.nan, 0], [1, 1, 1]])}, "references[0]"),
        ({"inputs": np.ones((2, 4))}, "4 dimensions"),
        ({"input_labels": ["a"]}, "1 labels"),
        ({"input_labels": ["a", "c"]}, "speaker c"),
        ({"reference_labels": ["a", "a"]}, "twice"),
        ({"inputs": np.ones(3)}, "shape (3,)"),
    ],
)
def test_embeddings_refused(change, words):
    good = {
        "inputs": np.ones((2, 3)),
        "references": np.eye(3)[:2],
        "input_labels": ["a", "b"],
        "reference_labels": ["a", "b"],
    }
    with pytest.raises(InputError) as error:
        rank_embeddings(**(good | change))
    assert words in str(error.value)
