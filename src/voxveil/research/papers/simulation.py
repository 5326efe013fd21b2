"""Simulated figures of two papers: Gaussians of equal mean for the worst-case paper, and rank histograms.

Figure 1 of the rank disclosure paper is a typical and an ideal rank histogram.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
from scipy.optimize import brentq
from scipy.special import log_ndtr

from voxveil.metrics.betabinomial import log_pmf
from voxveil.metrics.catalogue import METRICS
from voxveil.metrics.data import CountTable, FloatArray
from voxveil.metrics.disclosure import max_disclosure, mean_disclosure, rank_spread
from voxveil.metrics.eps_gauss import GaussPair
from voxveil.metrics.examples import same_mean_llr, same_mean_scores
from voxveil.metrics.suite import SuiteOptions, rank_values, trial_values
from voxveil.research.papers.result import Cell, Drawn, Number, Options, Result, Source, Table
from voxveil.runtime.seeding import stream

__all__ = ["MAKERS", "drawn_histogram", "hull_eer", "true_gamma"]

#: Trials of each kind in a draw, and draws behind a range.
TRIALS, DRAWS = 2000, 100
_TITLES = {
    "eer": "EER",
    "eer_rocch": "EER on the convex hull",
    "cllr_min": "min Cllr",
    "zebra_expected": "ZEBRA expected disclosure",
    "eps_max_pav": "worst case by PAV",
    "eps_max_gauss": "worst case by Gaussians",
    "eps_max_t": "worst case by t",
}
_TRUTH = GaussPair(0.0, 2.0, 0.0, 1.0)
_FORMULA = "N(0, 2^2) against N(0, 1): the threshold 0 splits both in half; LLR(s) = 3/8 s^2 - log 2"
_HULL = (
    "the monotone ratio of the distributions is constant below the t with log(F(t/2)/F(t)) = 3/8 t^2 - log 2,"
    " F the normal distribution: EER r/(1 + r), r = F(t/2)/F(t)"
)


def same_mean(project: Path, options: Options) -> Result:
    """Make figure 1."""
    from voxveil.research.papers.figures import densities_figure

    table = same_mean_scores(TRIALS, options.seed)
    source = _source(options.seed, 1)
    drawn = Drawn(
        "densities",
        densities_figure(table, _TRUTH),
        f"Scores of one draw, {TRIALS} trials of each kind, and the densities they were drawn from (lines).",
        "Two densities centred on 0; the target's is twice as wide, so beyond about 1.4 on both sides"
        " the target's lies higher",
        [source],
    )
    return Result(
        [_values_table(options.seed)],
        [drawn],
        _DIFFERENCES,
        _facts(options.seed),
        [
            "An EER knows a single threshold. Half of both kinds lies above 0, so there the error is that of"
            " a coin, 50 % exactly. A score far from 0, on either side, still comes from the same speaker"
            " nearly always: whoever reads the score itself and not one side of a threshold learns from it.",
        ],
    )


def oracle(project: Path, options: Options) -> Result:
    """Make figure 2."""
    from voxveil.research.papers.figures import llr_figure

    table = same_mean_scores(TRIALS, options.seed)
    drawn = Drawn(
        "llr",
        llr_figure(table, same_mean_llr),
        "True log-likelihood ratio of each score and what PAV, Gaussians and t distributions read from one"
        f" draw of {TRIALS} trials of each kind; dotted: no evidence.",
        "The true ratio is a parabola, -0.69 at 0 and 5.3 at 4; PAV, which may only rise, follows its right"
        " half and is flat on the left",
        [_source(options.seed, 1)],
    )
    return Result(
        [_truth_table(table, options.seed)],
        [drawn],
        _DIFFERENCES,
        _facts(options.seed),
        [
            "The true ratio is 3/8 s² - log 2: at least -0.69 nat, without a bound upwards. How large the"
            " worst case of a sample is depends on its most extreme score, hence on how many trials there"
            " are: Gaussians follow it, PAV is held back because its ratio may only rise with the score, so"
            " it reads nothing on the left side.",
        ],
    )


_DIFFERENCES = {
    "Which sample": "The paper's sample is not published: this one has a seed of its own. What is exact is"
    " given beside it; ranges over further draws show how far a sample strays.",
    "EER of a sample": "Exactly 50 % holds for the distributions; a draw reads a little above or below. On"
    " the convex hull of the ROC it is less even for the distributions: the hull may ignore the left side.",
    "Worst case by PAV": "PAV sees only monotone evidence and is smoothed at its ends (Laplace's rule), so it"
    " reads less than the true ratio of the most extreme score.",
}


def _values_table(seed: int) -> Table:
    draws = [trial_values(same_mean_scores(TRIALS, seed + k), _PLAIN)[0].value for k in range(DRAWS)]
    one, many = _source(seed, 1), _source(seed, DRAWS)
    rows: list[list[str | Number]] = []
    for name in _TITLES:
        values = np.array([draw[name] for draw in draws])
        low, high = (float(x) for x in np.percentile(values, (2.5, 97.5)))
        unit = METRICS[name].unit
        known = _exact(name, unit)
        rows.append(
            [
                _TITLES[name],
                unit,
                known,
                Number(f"draw/{name}", float(values[0]), unit, one, digits=4),
                Number(f"draws/{name}", float(np.median(values)), unit, many, (low, high), digits=4),
            ]
        )
    return Table(
        f"{TRIALS} target and {TRIALS} nontarget scores",
        ("Metric", "Unit", "Exact", "One draw", f"Median and 95 % range of {DRAWS} draws"),
        rows,
    )


def _exact(name: str, unit: str) -> str | Number:
    """Return what holds for the distributions themselves, empty where it is not worked out."""
    if name == "eer":
        return Number("exact/eer", 50.0, unit, Source("computed", _FORMULA))
    if name == "eer_rocch":
        return Number("exact/eer_rocch", hull_eer(), unit, Source("computed", _HULL), digits=4)
    return "unbounded" if name.startswith("eps_max") else ""


def hull_eer() -> float:
    """Return the EER in % on the convex hull of the ROC of N(0, 2^2) against N(0, 1)."""

    def excess(t: float) -> float:
        return float(log_ndtr(t / 2) - log_ndtr(t) - same_mean_llr(np.array(t)))

    ratio = float(np.exp(same_mean_llr(np.array(brentq(excess, 0.5, 3.0)))))
    return 100 * ratio / (1 + ratio)


def _truth_table(table: CountTable, seed: int) -> Table:
    """Return true and estimated ratios at some scores, and the largest over the draw."""
    from voxveil.metrics.plots import llr_curves

    curves: dict[str, Callable[[FloatArray], FloatArray]] = llr_curves(table)
    at = np.array([-4.0, -2.0, 0.0, 2.0, 4.0])
    one, exact = _source(seed, 1), Source("computed", _FORMULA)
    rows: list[list[str | Number]] = []
    for index, score in enumerate(at):
        rows.append(
            [
                f"{score:g}",
                Number(f"score {score:g}/true", float(same_mean_llr(at)[index]), "nat", exact),
                *(
                    Number(f"score {score:g}/{name}", float(curve(at)[index]), "nat", one)
                    for name, curve in curves.items()
                ),
            ]
        )
    ends = table.values[[0, -1]]
    largest = float(np.abs(same_mean_llr(ends)).max())
    found = trial_values(table, _PLAIN)[0].value
    rows.append(
        [
            f"largest |LLR| of the draw, scores {ends[0]:.2f} to {ends[1]:.2f}",
            Number("largest/true", largest, "nat", one),
            *(Number(f"largest/{name}", found[f"eps_max_{name.lower()}"], "nat", one) for name in curves),
        ]
    )
    header = ("Score", "True LLR, nat", *(f"By {name}, nat" for name in curves))
    return Table("Log-likelihood ratio of single scores", header, rows)


_PLAIN = SuiteOptions(replicates=0)


def _source(seed: int, draws: int) -> Source:
    seeds = f"seed {seed}" if draws == 1 else f"seeds {seed} to {seed + draws - 1}"
    return Source("computed", f"voxveil.metrics.examples.same_mean_scores({TRIALS}, seed), {seeds}")


def _facts(seed: int) -> tuple[str, ...]:
    return (f"simulated, seed {seed}", f"{TRIALS} + {TRIALS} trials")


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
    sources = {case: _ranks_source(case, options.seed) for case in _CASES}
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


def _ranks_source(case: str, seed: int) -> Source:
    alpha, beta = _CASES[case]
    return Source(
        "computed", f"{INPUTS} ranks of a beta-binomial, alpha {alpha:g}, beta {beta:g}, {case}, seed {seed}"
    )


MAKERS = {"wcd-fig1": same_mean, "wcd-fig2": oracle, "srd-fig1": typical_and_ideal}
