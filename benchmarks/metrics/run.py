"""Speed and memory of the metrics, each measured in a process of its own; prints a Markdown table.

    python benchmarks/metrics/run.py [--zebra CHECKOUT] [--only NAME ...]

Times are wall seconds and, after the slash, CPU seconds of the measured step (imports and drawing of
scores excluded); on a shared machine trust the CPU seconds and the ratios. ``--zebra`` names a checkout
of the ZEBRA reference implementation, timed in the same process as ours; without it that row is left out.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np


def timed(step: Callable[[], Any], repeats: int = 1) -> tuple[float, float, Any]:
    """Return the median wall and CPU seconds, and the last result."""
    walls, cpus, result = [], [], None
    for _ in range(repeats):
        wall, cpu = time.perf_counter(), time.process_time()
        result = step()
        walls.append(time.perf_counter() - wall)
        cpus.append(time.process_time() - cpu)
    return float(np.median(walls)), float(np.median(cpus)), result


def peak_mb() -> float:
    """Return the largest resident size of this process in MB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3


def drawn(n_target: int, n_nontarget: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the scores all benchmarks use: N(1, 1) against N(0, 1)."""
    rng = np.random.default_rng(0)
    return rng.normal(1, 1, n_target), rng.normal(0, 1, n_nontarget)


def suite(scale: int) -> dict[str, Any]:
    """Time the whole suite without intervals on ``scale`` times 1.1 M scores."""
    from voxveil.metrics.data import ScoreSet
    from voxveil.metrics.suite import SuiteOptions, evaluate_scores

    scores = ScoreSet.from_scores(*drawn(100_000 * scale, 1_000_000 * scale))
    options = SuiteOptions(replicates=0)
    wall, cpu, result = timed(lambda: evaluate_scores(scores, None, options=options))
    return {"wall": wall, "cpu": cpu, "peak_mb": peak_mb(), "eer": result["metrics"]["eer"]["value"]}


def zebra_metrics(checkout: Path | None) -> dict[str, Any]:
    """Time ZEBRA's two metrics against argsort plus isotonic regression, and against ZEBRA."""
    from scipy.optimize import isotonic_regression

    from voxveil.metrics.data import CountTable
    from voxveil.metrics.pav import pav, smooth
    from voxveil.metrics.zebra import expected_disclosure

    target, nontarget = drawn(100_000, 1_000_000)

    def ours() -> tuple[float, float]:
        bins = pav(CountTable.from_scores(target, nontarget))
        return expected_disclosure(bins), smooth(bins).max_abs_llr()

    def baseline() -> Any:
        scores = np.concatenate([target, nontarget])
        labels = np.concatenate([np.ones(target.size), np.zeros(nontarget.size)])
        return isotonic_regression(labels[np.argsort(scores, kind="stable")])

    wall, cpu, values = timed(ours, 5)
    base_wall, base_cpu, _ = timed(baseline, 5)
    row = {
        "wall": wall,
        "cpu": cpu,
        "baseline_cpu": base_cpu,
        "ratio_to_baseline": cpu / base_cpu,
        "baseline_wall": base_wall,
    }
    if checkout is not None:
        needed, whole, peers = run_zebra(checkout, target, nontarget)
        row |= {"zebra_cpu": needed, "zebra_whole_cpu": whole, "times_faster_than_zebra": needed / cpu}
        row |= {"difference_bit": abs(values[0] - peers[0]), "difference_nat": abs(values[1] - peers[1])}
    return row


def run_zebra(
    checkout: Path, target: np.ndarray, nontarget: np.ndarray
) -> tuple[float, float, tuple[float, float]]:
    """Time ZEBRA's steps for its two metrics, and its whole ``set_system``, in CPU seconds."""
    setattr(np, "infty", np.inf)  # noqa: B010  (gone from numpy 2, and ZEBRA imports it)
    sys.modules["tikzplotlib"] = types.ModuleType("tikzplotlib")
    sys.modules["tikzplotlib"].save = None  # type: ignore[attr-defined]
    sys.path.insert(0, str(checkout))
    import matplotlib

    matplotlib.use("Agg")
    from performance import optimal_llr, optimal_llr_from_Popt, rocch_pava
    from plo_plots import PriorLogOddsPlots

    def needed() -> tuple[float, float]:
        plots = PriorLogOddsPlots()
        _, _, optimal, perturb = rocch_pava(target, nontarget, laplace=False)
        sizes = {"Ntar": target.size, "Nnon": nontarget.size}
        plots.classA_llr, plots.classB_llr = optimal_llr_from_Popt(optimal, perturb, **sizes)
        smoothed = optimal_llr(tar=target, non=nontarget, laplace=True)
        return float(plots.get_delta_ECE()), float(np.abs(np.hstack(smoothed)).max())

    _, cpu, values = timed(needed)
    _, whole, _ = timed(lambda: PriorLogOddsPlots(target, nontarget))
    return cpu, whole, values


def bootstrap() -> dict[str, Any]:
    """Time 1,000 bootstrap replicates of every verification metric on 100 k trials of 100 speakers."""
    from voxveil.metrics.intervals import SortedTrials, bootstrap_weights
    from voxveil.metrics.suite import SuiteOptions, _replicate

    trials = SortedTrials.from_scores(hundred_speakers().pairs())
    weights = bootstrap_weights(trials.n_speakers, 1000, seed=0)
    tables = ((lambda w=w: trials.resampled(w)) for w in weights)
    wall, cpu, _ = timed(lambda: _replicate(tables, SuiteOptions()))
    return {"wall": wall, "cpu": cpu, "peak_mb": peak_mb(), "trials": int(trials.is_target.size)}


def intervals() -> dict[str, Any]:
    """Time the whole suite, ranks included, with 1,000 replicates of both kinds on 100 k trials."""
    from voxveil.metrics.suite import SuiteOptions, evaluate_scores

    given = hundred_speakers()
    wall, cpu, _ = timed(lambda: evaluate_scores(given.pairs(), given, options=SuiteOptions()))
    return {"wall": wall, "cpu": cpu, "peak_mb": peak_mb(), "trials": given.scores.size}


def hundred_speakers() -> Any:
    """Return 1,000 inputs of 100 speakers against 100 references."""
    from voxveil.metrics.data import RankSet

    rng = np.random.default_rng(0)
    labels = np.repeat(np.arange(100), 10)
    scores = rng.normal(size=(1000, 100))
    scores[np.arange(1000), labels] += 1
    return RankSet.from_labels(scores, labels, np.arange(100))


def identification() -> dict[str, Any]:
    """Time 10^8 pairs of 192-dimensional embeddings."""
    from voxveil.metrics.ranks import rank_embeddings

    rng = np.random.default_rng(0)
    references = rng.normal(size=(10_000, 192)).astype(np.float32)
    inputs = references + 3 * rng.normal(size=references.shape).astype(np.float32)
    labels = list(range(10_000))
    before = peak_mb()
    wall, cpu, _ = timed(lambda: rank_embeddings(inputs, references, labels, labels), 3)
    return {"wall": wall, "cpu": cpu, "peak_mb": peak_mb(), "peak_growth_mb": peak_mb() - before}


def text(n_speakers: int = 370, n_inputs: int = 10_000) -> dict[str, Any]:
    """Time 3.7 M trials read from gzipped text and evaluated; values must equal those of the arrays."""
    from voxveil.metrics.data import CountTable
    from voxveil.metrics.evaluation import read_evaluation
    from voxveil.metrics.suite import SuiteOptions, evaluate_scores, trial_values

    rng = np.random.default_rng(0)
    scores = rng.normal(size=(n_inputs, n_speakers)).round(9)
    own = np.arange(n_inputs) % n_speakers
    with tempfile.TemporaryDirectory() as folder:
        trial_path, score_path = Path(folder, "trials.gz"), Path(folder, "scores.gz")
        with gzip.open(trial_path, "wt", 1) as trials, gzip.open(score_path, "wt", 1) as out:
            for i, row in enumerate(scores.tolist()):
                trials.writelines(
                    f"m{j} u{i} {'target' if own[i] == j else 'nontarget'}\n" for j in range(n_speakers)
                )
                out.writelines(f"m{j} u{i} {x!r}\n" for j, x in enumerate(row))
        base = peak_mb()
        wall, cpu, found = timed(lambda: read_evaluation(score_path, trial_path))
    more_wall, more_cpu, result = timed(
        lambda: evaluate_scores(found.scores, found.ranks, options=SuiteOptions(replicates=0))
    )
    same = own[:, None] == np.arange(n_speakers)
    direct = trial_values(CountTable.from_scores(scores[same], scores[~same]), SuiteOptions())[0].value
    for name, value in direct.items():
        got = result["metrics"][name]["value"]
        if not (got == value or (got is None and np.isnan(value))):
            raise SystemExit(f"{name}: {got} from text, {value} from arrays")
    return {
        "wall": wall + more_wall,
        "cpu": cpu + more_cpu,
        "read_cpu": cpu,
        "peak_mb": peak_mb(),
        "before_mb": base,
        "trials": int(scores.size),
    }


BENCHMARKS: dict[str, Callable[..., dict[str, Any]]] = {
    "suite-1.1M": lambda: suite(1),
    "suite-4.4M": lambda: suite(4),
    "zebra-1.1M": zebra_metrics,
    "bootstrap-1000x100k": bootstrap,
    "intervals-1000x100k": intervals,
    "identification-1e8": identification,
    "text-3.7M": text,
}


def main() -> None:
    """Run each benchmark in its own process and print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--zebra", type=Path, help="checkout of the ZEBRA reference implementation")
    parser.add_argument("--only", nargs="+", choices=BENCHMARKS, default=list(BENCHMARKS))
    parser.add_argument("--here", choices=BENCHMARKS, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.here:
        given = (args.zebra,) if args.here.startswith("zebra") else ()
        print(json.dumps(BENCHMARKS[args.here](*given)))
        return
    print("| benchmark | wall s / CPU s | peak MB | more |\n|---|---|---|---|")
    for name in args.only:
        command = [sys.executable, __file__, "--here", name]
        command += ["--zebra", str(args.zebra)] if args.zebra else []
        done = subprocess.run(command, check=True, capture_output=True, text=True, env={**os.environ})
        row = json.loads(done.stdout.splitlines()[-1])
        wall, cpu, peak = row.pop("wall"), row.pop("cpu"), row.pop("peak_mb", None)
        more = ", ".join(
            f"{key} {value:.3g}" if isinstance(value, float) else f"{key} {value}"
            for key, value in row.items()
        )
        print(
            f"| {name} | {wall:.2f} / {cpu:.2f} | {'' if peak is None else f'{peak:.0f}'} | {more} |",
            flush=True,
        )


if __name__ == "__main__":
    main()
