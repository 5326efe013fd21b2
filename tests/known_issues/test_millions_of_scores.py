"""The EER of a few million trials asked for hundreds of GB, or was killed.

Seen in https://github.com/speechbrain/speechbrain/issues/1387 and
https://github.com/speechbrain/speechbrain/issues/762. 3.7 million scores are judged here in a process that
may not have more than 2 GB of memory.
"""

from __future__ import annotations

import gzip
import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

TARGETS, NONTARGETS = 200_000, 3_500_000
#: Address space, which is more than what is used: what numpy and scipy map at their import comes on top.
CODE = """
import json, resource, sys
from pathlib import Path
import numpy as np, scipy.optimize, scipy.special, scipy.sparse
from voxveil.metrics.evaluation import read_evaluation
from voxveil.metrics.suite import SuiteOptions, evaluate_scores
mapped = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (mapped + 2_000_000_000,) * 2)
path = Path(sys.argv[1])
found = read_evaluation(path, Path(sys.argv[2]) if len(sys.argv) > 2 else None)
result = evaluate_scores(found.scores, found.ranks, options=SuiteOptions(replicates=0))
values = {name: entry["value"] for name, entry in result["metrics"].items()}
print(json.dumps({"values": values, "trials": result["trials"]}))
"""


def judged(*paths: Path) -> dict:
    command = [sys.executable, "-c", CODE, *map(str, paths)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-800:]
    return json.loads(done.stdout.splitlines()[-1])


@pytest.fixture(scope="module")
def drawn() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(3)
    # Scores of few digits tie by the thousand, as those of real systems do.
    return rng.normal(1, 1, TARGETS).round(4), rng.normal(0, 1, NONTARGETS).round(4)


def test_all_metrics_of_millions_of_scores_in_two_gigabytes(
    drawn: tuple[np.ndarray, np.ndarray], tmp_path: Path
) -> None:
    np.savez(tmp_path / "scores.npz", target=drawn[0], nontarget=drawn[1])
    found = judged(tmp_path / "scores.npz")
    assert found["trials"]["target"] + found["trials"]["nontarget"] == TARGETS + NONTARGETS
    values = found["values"]
    # Two Gaussians one standard deviation apart: the EER is Phi(-1/2).
    assert values["eer"] == pytest.approx(30.85, abs=0.15)
    for name in ("cllr_min", "linkability", "zebra_expected", "eps_max_pav", "eps_max_gauss", "eps_max_t"):
        assert values[name] is not None, name


def test_a_streamed_read_gives_the_same_values(drawn: tuple[np.ndarray, np.ndarray], tmp_path: Path) -> None:
    target, nontarget = drawn[0][:10_000], drawn[1][:150_000]
    np.savez(tmp_path / "scores.npz", target=target, nontarget=nontarget)
    with (
        gzip.open(tmp_path / "scores.txt.gz", "wt", compresslevel=1) as scores,
        gzip.open(tmp_path / "trials.txt.gz", "wt", compresslevel=1) as trials,
    ):
        for label, values in (("target", target), ("nontarget", nontarget)):
            for number, value in enumerate(values.tolist()):
                pair = f"e{number % 500} {label}{number}"
                scores.write(f"{pair} {value}\n")
                trials.write(f"{pair} {label}\n")
    from_text = judged(tmp_path / "scores.txt.gz", tmp_path / "trials.txt.gz")
    assert from_text["values"] == judged(tmp_path / "scores.npz")["values"]
