"""All privacy metrics of one attack, with intervals, null ranges and warnings.

:func:`evaluate_scores` is pure: it takes scores, returns the dictionary that is written as JSON, and
is what both ``voxveil evaluate`` and the evaluate stage call.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np

from voxveil.metrics import betabinomial, cllr, disclosure, eer, eps_gauss, eps_t, legal, linkability, zebra
from voxveil.metrics.catalogue import FALSE_POSITIVE_RATES, METRICS
from voxveil.metrics.data import CountTable, FloatArray, RankSet, ScoreSet, UndefinedMetricError
from voxveil.metrics.evidence import Findings, find_warnings
from voxveil.metrics.intervals import Interval, SortedTrials, bootstrap_weights, interval, permutations
from voxveil.metrics.pav import PAV_RULES, PavBins, pav, smooth
from voxveil.metrics.ranks import Ranks, permuted_histograms, rank_inputs, speaker_histograms

__all__ = ["SuiteOptions", "evaluate_scores", "rank_values", "trial_values"]

_BLOCK_ENTRIES = 2_000_000
_NO_RANKS = "no scores of every input against the same references"


@dataclass(frozen=True)
class SuiteOptions:
    """Options of an evaluation.

    Attributes:
        scores_are_llr: The scores are natural-log LLRs, so Cllr means something.
        pav_rule: Smoothing of ``eps_max_pav``, one of :data:`voxveil.metrics.pav.PAV_RULES`.
        replicates: Replicates behind ci95 and null95 each; 0 computes neither.
        seed: Seed of the replicates.
    """

    scores_are_llr: bool = False
    pav_rule: str = "zebra"
    replicates: int = 1000
    seed: int = 0

    def __post_init__(self) -> None:
        if self.pav_rule not in PAV_RULES:
            raise ValueError(f"pav_rule must be one of {', '.join(PAV_RULES)}; got {self.pav_rule!r}")
        if self.replicates < 0:
            raise ValueError(f"replicates must be 0 or more; got {self.replicates}")


@dataclass
class Values:
    """Values by metric name in the unit of :data:`METRICS`; a reason for each undefined one."""

    value: dict[str, float] = field(default_factory=dict)
    reason: dict[str, str] = field(default_factory=dict)

    def put(self, name: str, compute: Callable[[], float], scale: float = 1.0) -> None:
        """Store a value, or the reason why it is undefined."""
        try:
            number = compute() * scale
        except UndefinedMetricError as error:
            self.reason[name] = f"unbounded: {error}" if error.unbounded else str(error)
            self.value[name] = float("inf") if error.unbounded else float("nan")
            return
        self.value[name] = number


def _bounded(bins: PavBins) -> float:
    worst = bins.max_abs_llr()
    if np.isinf(worst):
        at = int(np.argmax(np.abs(bins.llr)))
        raise UndefinedMetricError(
            f"a bin of {bins.target[at]} target and {bins.nontarget[at]} nontarget trials is not smoothed",
            unbounded=True,
        )
    return worst


def trial_values(
    table: CountTable, options: SuiteOptions, start: eps_t.StudentPair | None = None
) -> tuple[Values, PavBins]:
    """Return every verification metric of a count table, and its PAV bins.

    Args:
        table: The scores.
        options: How to evaluate.
        start: t fits of the sample that ``table`` is a replicate of.
    """
    bins = pav(table)
    out = Values()
    out.put("eer", lambda: eer.eer(table), 100)
    out.put("eer_rocch", lambda: eer.eer_rocch(bins), 100)
    for name, rate in FALSE_POSITIVE_RATES.items():
        out.value[name] = 100 * eer.tpr_at_fpr(table, rate)
    if options.scores_are_llr:
        out.put("cllr", lambda: cllr.cllr(table))
    else:
        out.value["cllr"] = float("nan")
        out.reason["cllr"] = "the scores are not declared to be LLRs (--scores-are-llr)"
    out.put("cllr_min", lambda: cllr.cllr_min(bins))
    out.put("linkability", lambda: linkability.linkability(table))
    out.value["unlinkability"] = 1 - out.value["linkability"]
    if "linkability" in out.reason:
        out.reason["unlinkability"] = out.reason["linkability"]
    out.put("linkability_vpc", lambda: linkability.linkability_vpc(table))
    out.put("zebra_expected", lambda: zebra.expected_disclosure(bins))
    out.put("zebra_worst_case", lambda: smooth(bins).max_abs_llr())
    out.put("eps_max_pav", lambda: _bounded(smooth(bins, options.pav_rule)))
    out.put("eps_max_gauss", lambda: eps_gauss.eps_max_gauss(table))
    out.put("eps_max_t", lambda: eps_t.eps_max_t(table, eps_t.fit_t(table, start)))
    return out, bins


def _require_false_alarms(values: Values, table: CountTable) -> None:
    """Make a true positive rate undefined where the trials allow for too few false alarms."""
    for name, rate in FALSE_POSITIVE_RATES.items():
        if rate * table.n_nontarget < eer.FEWEST_FALSE_ALARMS:
            needed = round(eer.FEWEST_FALSE_ALARMS / rate)
            values.value[name] = float("nan")
            values.reason[name] = (
                f"not enough trials: {table.n_nontarget} nontarget trials, needs {needed} for"
                f" {eer.FEWEST_FALSE_ALARMS} false alarms at {100 * rate:g} %"
            )


def rank_values(histograms: FloatArray) -> tuple[dict[str, FloatArray], tuple[str, ...]]:
    """Return every rank metric of R histograms, and the limits at which beta-binomial fits stopped.

    Args:
        histograms: Weights of ranks 1..N, shape ``(R, N)``.

    Returns:
        Values by name, shape ``(R,)``, infinite where unbounded; and the name of the limit, "" where the
        fit is finite.
    """
    step = max(1, _BLOCK_ENTRIES // histograms.shape[1])
    parts = [_rank_values(histograms[start : start + step]) for start in range(0, histograms.shape[0], step)]
    values = {name: np.concatenate([part[0][name] for part in parts]) for name in parts[0][0]}
    return values, tuple(limit for part in parts for limit in part[1])


def _rank_values(histograms: FloatArray) -> tuple[dict[str, FloatArray], tuple[str, ...]]:
    fits = betabinomial.fit_betabinomial(histograms)
    result: dict[str, FloatArray] = {}
    for suffix, gamma in (("", histograms / histograms.sum(1, keepdims=True)), ("_bb", fits.gamma)):
        result |= {f"{name}{suffix}": values for name, values in _of_gamma(gamma).items()}
        result[f"identification_rate{suffix}"] = 100 * gamma[:, 0]
        llr = disclosure.rank_llr(gamma)
        if suffix:
            result["eps_max_rank"] = np.abs(llr).max(1)
            result["eps_max_rank_positive"] = llr.max(1)
        else:
            result["eps_max_rank_empirical"] = np.abs(llr).max(1)
    return result, fits.limit


def _of_gamma(gamma: FloatArray) -> dict[str, FloatArray]:
    """Return the metrics of rank probabilities that are no rate."""
    return {
        "rank_mean": disclosure.mean_disclosure(gamma),
        "rank_max": disclosure.max_disclosure(gamma),
        "rank_spread": disclosure.rank_spread(gamma),
    }


def _single_rank_values(ranks: RankSet, ranked: Ranks) -> tuple[Values, dict[str, dict[str, Any]]]:
    histogram = ranked.histogram()
    arrays, limits = rank_values(histogram[None])
    out = Values({name: float(array[0]) for name, array in arrays.items()})
    limit = f"the beta-binomial fit has no finite maximum (limit: {limits[0]})" if limits[0] else ""
    for name, value in out.value.items():
        if np.isinf(value):
            why = limit or "a rank has probability 0 or 1"
            if name.endswith("empirical"):
                why = f"{np.count_nonzero(histogram == 0)} of {histogram.size} ranks never occurred"
            out.reason[name] = f"unbounded: {why}"
    out.put("linkability_legal", lambda: legal.linkability_legal(ranked))
    out.put("singling_out", lambda: float(legal.singling_out_outcomes(ranks).mean()))
    strict, optimistic = ranked.identification_ends()
    extra: dict[str, dict[str, Any]] = {}
    extra["identification_rate"] = {"optimistic": 100 * optimistic, "strict": 100 * strict}
    for end, rank in (("optimistic", ranked.best), ("strict", ranked.worst)):
        gamma = np.bincount(rank - 1, minlength=ranked.n_references) / rank.size
        for name, read in _of_gamma(gamma).items():
            extra.setdefault(name, {})[end] = float(read)
    return out, extra


def _replicate(tables: Iterable[Callable[[], CountTable]], options: SuiteOptions) -> dict[str, FloatArray]:
    """Return the verification metrics of replicates; nan where a replicate has no value."""
    names = [name for name, about in METRICS.items() if about.source == "trials"]
    rows: list[dict[str, float]] = []
    start: eps_t.StudentPair | None = None
    for make in tables:
        try:
            table = make()
        except UndefinedMetricError:
            rows.append({})
            continue
        if start is None:
            with suppress(UndefinedMetricError):
                start = eps_t.fit_t(table)
        rows.append(trial_values(table, options, start)[0].value)
    return {name: np.array([row.get(name, np.nan) for row in rows]) for name in names}


def _trial_replicates(
    scores: ScoreSet, options: SuiteOptions
) -> tuple[dict[str, FloatArray], dict[str, FloatArray]]:
    trials = SortedTrials.from_scores(scores)
    weights = bootstrap_weights(trials.n_speakers, options.replicates, options.seed)
    shuffled = permutations(trials.compared(), options.replicates, options.seed)
    resampled = (partial(trials.resampled, w) for w in weights)
    relabelled = (partial(trials.relabelled, p) for p in shuffled)
    return _replicate(resampled, options), _replicate(relabelled, options)


def _rank_replicates(
    ranks: RankSet, ranked: Ranks, options: SuiteOptions
) -> tuple[dict[str, FloatArray], dict[str, FloatArray]]:
    speakers, histograms = speaker_histograms(ranked)
    weights = bootstrap_weights(speakers.size, options.replicates, options.seed)
    n = ranked.n_references
    everyone = np.ones((n, n), dtype=np.bool_)
    permuted = permuted_histograms(
        ranks, np.stack(list(permutations(everyone, options.replicates, options.seed)))
    )
    ci, null = rank_values(weights @ histograms)[0], rank_values(permuted)[0]
    first = np.stack([(ranked.best == 1)[ranked.speaker_index == s].sum() for s in speakers])
    total = np.bincount(ranked.speaker_index)[speakers]
    ci["linkability_legal"] = (weights @ first) / (weights @ total)
    if not ranked.n_tied:  # its ties are wins, the histogram's are spread
        null["linkability_legal"] = null["identification_rate"] / 100
    with suppress(UndefinedMetricError):
        ci["singling_out"] = (weights @ legal.singling_out_outcomes(ranks)) / speakers.size
    return ci, null


def evaluate_scores(
    scores: ScoreSet,
    ranks: RankSet | None,
    *,
    options: SuiteOptions | None = None,
    rank_reason: str | None = None,
) -> dict[str, Any]:
    """Return every privacy metric of one attack.

    Args:
        scores: Verification trials.
        ranks: Every input against the same references, or None.
        options: How to evaluate; the defaults where None.
        rank_reason: Why ``ranks`` is None, shown with the undefined metrics.

    Returns:
        ``{"trials": ..., "metrics": {NAME: ...}, "warnings": [...]}``: the JSON contract of
        ``voxveil evaluate``. Undefined and unbounded values are None with the reason in ``note``.
    """
    options = options or SuiteOptions()
    table = scores.table()
    values, bins = trial_values(table, options)
    _require_false_alarms(values, table)
    ranked = None if ranks is None else rank_inputs(ranks)
    extra: dict[str, dict[str, Any]] = {}
    if ranks is not None and ranked is not None:
        rank_part, extra = _single_rank_values(ranks, ranked)
        values.value.update(rank_part.value)
        values.reason.update(rank_part.reason)

    ci: dict[str, FloatArray] = {}
    null: dict[str, FloatArray] = {}
    no_interval = {"trials": scores.speaker_reason, "ranks": None}
    if options.replicates == 0:
        no_interval = dict.fromkeys(no_interval, "not asked for (0 replicates)")
    else:
        if scores.n_speakers is not None and scores.n_speakers < 2:
            no_interval["trials"] = "there is a single speaker"
        if no_interval["trials"] is None:
            ci, null = _trial_replicates(scores, options)
        if ranks is not None and ranked is not None:
            rank_ci, rank_null = _rank_replicates(ranks, ranked, options)
            ci.update(rank_ci)
            null.update(rank_null)

    worst = values.value["zebra_worst_case"]
    log10 = float(worst / np.log(10))
    extra["zebra_worst_case"] = {"log10": log10, "tag": zebra.zebra_tag(log10)}
    tied = 0 if ranked is None else ranked.n_tied
    metrics = {}
    for name, about in METRICS.items():
        entry = _entry(name, values, ci.get(name), null.get(name), no_interval[about.source])
        if about.source == "ranks" and ranks is None:
            entry["note"] = rank_reason or _NO_RANKS
        if name == "eps_max_pav":
            smoothing = "unsmoothed" if options.pav_rule == "none" else f"{options.pav_rule} smoothing"
            entry["estimator"] = f"PAV, {smoothing}"
        if name == "singling_out" and entry["value"] is not None:
            entry["note"] = _join(entry["note"], f"a random predicate reads {legal.TRIVIAL_SINGLING_OUT:.3f}")
        if tied and name in extra and about.source == "ranks":
            ends = extra[name]
            text = f"{tied} inputs tied: optimistic {ends['optimistic']:.4g}, strict {ends['strict']:.4g}"
            entry["note"] = _join(entry["note"], text)
        entry.update(extra.get(name, {}))
        metrics[name] = entry
    n_references = None if ranked is None else ranked.n_references
    findings = Findings(metrics, table, bins, n_references, scores.n_speakers)
    return {
        "trials": {"target": table.n_target, "nontarget": table.n_nontarget, "speakers": scores.n_speakers},
        "metrics": metrics,
        "warnings": find_warnings(findings),
    }


def _entry(
    name: str, values: Values, ci: FloatArray | None, null: FloatArray | None, no_interval: str | None
) -> dict[str, Any]:
    about = METRICS[name]
    value = values.value.get(name, float("nan"))
    note = values.reason.get(name)
    bounds: dict[str, list[float] | None] = {}
    for key, replicates in (("ci95", ci), ("null95", null)):
        found = Interval(None, None) if replicates is None else interval(replicates)
        if np.isnan(value) or (key == "ci95" and np.isinf(value)):
            found = Interval(None, None)
        bounds[key] = None if found.bounds is None else list(found.bounds)
        if found.note:
            note = _join(note, f"{key}: {found.note}")
    if np.isfinite(value):
        if bounds["ci95"] is not None and about.maximum:
            note = _join(note, "ci95 is a range over resampled speakers, not a confidence interval")
        if ci is None and null is None and no_interval:
            note = _join(note, f"no intervals: {no_interval}")
    return {
        "value": value if np.isfinite(value) else None,
        "unit": about.unit,
        **bounds,
        "estimator": about.estimator,
        "note": note,
    }


def _join(note: str | None, text: str) -> str:
    return text if note is None else f"{note}; {text}"
