"""CPU seconds that the exact noise of every mechanism takes, beside OpenDP's.

Every row is 25,600 random outcomes, or as near as its unit allows: one second of content at 100 vectors
of 256 entries, or as many codes, entries or words.

python benchmarks/privacy/throughput.py
"""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np

from voxveil.privacy import (
    GaussianSphere,
    LaplaceBall,
    LaplaceCube,
    LaplaceSimplex,
    PublicNoise,
    RandomizedResponse,
    SubsetSelection,
    SystemNoise,
)
from voxveil.privacy.discrete import discrete_laplace, rate_for
from voxveil.privacy.discrete_gaussian import discrete_gaussian

VECTORS, SIZE, CODES, CHANNELS = 100, 256, 40, 16
DRAWS = VECTORS * SIZE


def seconds(work: Callable[[], object], repeats: int = 9) -> float:
    """Return the least CPU time of ``work``."""
    times = []
    for _ in range(repeats):
        start = time.process_time()
        work()
        times.append(time.process_time() - start)
    return min(times)


def opendp_rows() -> dict[str, float]:
    """Return the same draws by OpenDP, where it is installed."""
    try:
        import opendp.prelude as dp
    except ImportError:
        print("opendp is not installed")
        return {}
    dp.enable_features("contrib")
    space, zeros = dp.vector_domain(dp.atom_domain(T=int)), [0] * DRAWS
    laplace = dp.m.make_geometric(space, dp.l1_distance(T=int), scale=float(2 << 20))
    gaussian = dp.m.make_gaussian(space, dp.l2_distance(T=float), scale=float(1 << 24))
    return {
        f"{DRAWS} discrete Laplace draws of OpenDP": seconds(lambda: laplace(zeros), 3),
        f"{DRAWS} discrete Gaussian draws of OpenDP": seconds(lambda: gaussian(zeros), 3),
    }


def main() -> None:
    """Print the table."""
    random, system = np.random.default_rng(1), SystemNoise()
    vectors, cube = random.normal(size=(VECTORS, SIZE)), random.random((CHANNELS, DRAWS // CHANNELS))
    shares, codes = random.random((DRAWS // CODES, CODES)), random.random((DRAWS, CODES))
    contour, rate = random.normal(size=24), rate_for(1.0, 2 << 20)
    rows = {
        f"{DRAWS} discrete Laplace draws": lambda: discrete_laplace(DRAWS, rate, system.words),
        f"{DRAWS} discrete Gaussian draws": lambda: discrete_gaussian(DRAWS, system.words),
        f"laplace_l1, {VECTORS} x {SIZE}": lambda: LaplaceSimplex(1.0).release(vectors, system),
        f"laplace_l1 sharp, {DRAWS // CODES} x {CODES}": lambda: LaplaceSimplex(1.0).release(shares, system),
        f"laplace_cube, {CHANNELS} x {DRAWS // CHANNELS}": lambda: LaplaceCube(1.0).release(cube, system),
        "laplace_ball, 24 coefficients": lambda: LaplaceBall(1.0).release(contour, system),
        f"gaussian_l2, {VECTORS} x {SIZE}": lambda: GaussianSphere(0.1).release(vectors, system),
        f"randomized_response, {DRAWS} codes of {CODES}": lambda: RandomizedResponse(1.0).release(
            codes, system
        ),
        f"subset_selection, {DRAWS // CODES} codes of {CODES}": lambda: SubsetSelection(1.0).release(
            shares, system
        ),
        "laplace_l1 with seeded float noise": lambda: LaplaceSimplex(1.0).release(vectors, PublicNoise(1)),
    }
    for name, value in {name: seconds(work) for name, work in rows.items()}.items():
        print(f"{name:44} {value:.4f} s")
    for name, value in opendp_rows().items():
        print(f"{name:44} {value:.4f} s")


if __name__ == "__main__":
    main()
