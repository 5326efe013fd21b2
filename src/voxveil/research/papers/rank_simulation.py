"""Figure 1 of the rank disclosure paper: a typical and an ideal rank histogram, simulated."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from voxveil.metrics.betabinomial import log_pmf
from voxveil.metrics.data import FloatArray
from voxveil.metrics.disclosure import max_disclosure, mean_disclosure, rank_spread
from voxveil.metrics.suite import rank_values
from voxveil.research.papers.result import Cell, Drawn, Number, Options, Result, Source, Table
from voxveil.runtime.seeding import stream

__all__ = ["MAKERS", "drawn_histogram", "true_gamma"]

#: References as in the paper; inputs of a draw; (alpha, beta) of the typical system.
REFERENCES, INPUTS, TYPICAL = 40, 400, (0.5, 3.0)
#: Uniform ranks are the beta-binomial with both parameters 1.
_IDEAL = (1.0, 1.0)
_CASES = {"typical": TYPICAL, "ideal": _IDEAL}
_METRICS = (
    ("rank_max", "maximum", "bit"),
    ("rank_mean", "mean", "bit"),
    ("identification_rate", "identification rate", "%"),
    ("rank_spread", "spread", "fraction"),
)


def true_gamma(alpha: float, beta: float) -> FloatArray:
    """Return the rank probabilities that a case is drawn from, shape ``(N,)``."""
    if (alpha, beta) == _IDEAL:
        return np.full(REFERENCES, 1 / REFERENCES)
    gamma: FloatArray = np.exp(log_pmf(REFERENCES, np.array(alpha), np.array(beta)))
    return gamma


def drawn_histogram(case: str, seed: int) -> FloatArray:
    """Return the rank histogram of a draw of :data:`INPUTS` inputs, shape ``(N,)``."""
    rng = stream(seed, "papers", "ranks", case, INPUTS)
    better = rng.binomial(REFERENCES - 1, rng.beta(*_CASES[case], INPUTS))
    return np.bincount(better, minlength=REFERENCES).astype(np.float64)


def typical_and_ideal(project: Path, options: Options) -> Result:
    """Make figure 1."""
    from voxveil.metrics.plots import rank_histogram_figure

    histograms = {case: drawn_histogram(case, options.seed) for case in _CASES}
    sources = {case: _source(case, options.seed) for case in _CASES}
    drawn = Drawn(
        "ranks",
        rank_histogram_figure(histograms),
        f"Rank histograms of one draw of {INPUTS} inputs each among N = {REFERENCES}: markers counts, lines"
        " the beta-binomial fit, dotted chance.",
        "Typical: probability falls from the first rank on; ideal: scattered around 1/40",
        list(sources.values()),
    )
    rows: list[list[Cell]] = []
    for case in _CASES:
        values, _ = rank_values(histograms[case][None])
        exact = Source("computed", f"beta-binomial, alpha {_CASES[case][0]:g}, beta {_CASES[case][1]:g}")
        truth = _truth(true_gamma(*_CASES[case]))
        for metric, title, unit in _METRICS:
            rows.append(
                [
                    f"{case}, {title}",
                    unit,
                    Number(f"{case}/{metric}/exact", truth[metric], unit, exact),
                    Number(f"{case}/{metric}", float(values[metric][0]), unit, sources[case]),
                    Number(f"{case}/{metric}_bb", float(values[f"{metric}_bb"][0]), unit, sources[case]),
                ]
            )
    header = ("Case and metric", "Unit", "Exact", "Direct, from the histogram", "Beta-binomial fit")
    return Result(
        [Table(f"Drawn from known probabilities, {INPUTS} inputs, N = {REFERENCES}", header, rows)],
        [drawn],
        {
            "Which typical system": "The paper's own histogram is not published as numbers: this one is drawn"
            f" from a beta-binomial with alpha {TYPICAL[0]:g} and beta {TYPICAL[1]:g}, in shape like a system"
            " that leaks. Read it for its form, not for its values.",
            "An ideal system does not read 0": f"Exactly flat ranks disclose 0 bit; {INPUTS} inputs scatter"
            " around 1/N, and the histogram reads that as disclosure, most of all in its maximum. The fit has"
            " two parameters instead of 39 and scatters far less.",
        },
        (f"simulated, seed {options.seed}", f"N = {REFERENCES}", f"{INPUTS} inputs each"),
        [
            f"Disclosure of rank k is log2(N γ_k) bit: 0 at chance, log2 {REFERENCES} ="
            f" {np.log2(REFERENCES):.2f} bit if that rank always occurs. Spread is the share of ranks above"
            " chance: small where identity stands in a few ranks.",
        ],
    )


def _truth(gamma: FloatArray) -> dict[str, float]:
    return {
        "rank_max": float(max_disclosure(gamma)),
        "rank_mean": float(mean_disclosure(gamma)),
        "identification_rate": 100 * float(gamma[0]),
        "rank_spread": float(rank_spread(gamma)),
    }


def _source(case: str, seed: int) -> Source:
    alpha, beta = _CASES[case]
    return Source(
        "computed", f"{INPUTS} ranks of a beta-binomial, alpha {alpha:g}, beta {beta:g}, {case}, seed {seed}"
    )


MAKERS = {"srd-fig1": typical_and_ideal}
