"""CPU seconds that the exact noise of one second of content takes, beside OpenDP's.

python benchmarks/privacy/throughput.py
"""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np

from voxveil.privacy import LaplaceSimplex, PublicNoise, SystemNoise
from voxveil.privacy.discrete import discrete_laplace, rate_for

VECTORS, SIZE = 100, 256
DRAWS = VECTORS * SIZE


def seconds(work: Callable[[], object], repeats: int = 9) -> float:
    """Return the least CPU time of ``work``."""
    times = []
    for _ in range(repeats):
        start = time.process_time()
        work()
        times.append(time.process_time() - start)
    return min(times)


def main() -> None:
    """Print the table."""
    value = np.random.default_rng(1).normal(size=(VECTORS, SIZE))
    mechanism = LaplaceSimplex(1.0)
    rate, words = rate_for(1.0, 2 << 20), SystemNoise().words
    rows = {
        f"{DRAWS} exact draws": seconds(lambda: discrete_laplace(DRAWS, rate, words)),
        "release of 1 s of content, exact": seconds(lambda: mechanism.release(value, SystemNoise())),
        "the same with seeded float noise": seconds(lambda: mechanism.release(value, PublicNoise(1))),
    }
    try:
        import opendp.prelude as dp
    except ImportError:
        print("opendp is not installed")
    else:
        dp.enable_features("contrib")
        oracle = dp.m.make_geometric(
            dp.vector_domain(dp.atom_domain(T=int)), dp.l1_distance(T=int), scale=float(2 << 20)
        )
        zeros = [0] * DRAWS
        rows[f"{DRAWS} draws of OpenDP"] = seconds(lambda: oracle(zeros), 3)
    for name, value_s in rows.items():
        print(f"{name:36} {value_s:.4f} s")


if __name__ == "__main__":
    main()
