"""Hold a run in containers against one by DVC: every metric of every system, to 1e-6.

    voxveil pipeline run --local --params params.yaml --root runs/containers
    dvc repro
    python docker/compare.py runs/containers metrics [SYSTEM ...]

All systems, or those named. Equal only where nothing is drawn: systems without noise, one thread
(base.threads: 1), the same wheels.
"""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Collection
from pathlib import Path

TOLERANCE = 1e-6


def flat(paths: list[Path], systems: Collection[str]) -> dict[str, float]:
    """Return every number of the flat metric files of ``systems`` (empty = of all), by system and name."""
    found = {}
    for path in paths:
        system = path.name.removesuffix(".metrics.json")
        if systems and system not in systems:
            continue
        found.update(
            {f"{system} {name}": float(value) for name, value in json.loads(path.read_text()).items()}
        )
    return found


def main(run: Path, metrics: Path, systems: Collection[str]) -> int:
    """Compare; 1 where a metric differs or one side lacks it."""
    sides = (
        flat(sorted(run.glob("evaluate*/metrics/*.metrics.json")), systems),
        flat(sorted(metrics.glob("*.metrics.json")), systems),
    )
    for place, side in zip((run, metrics), sides, strict=True):
        for system in systems or [""]:
            if not any(name.startswith(f"{system} " if system else "") for name in side):
                print(f"compare: no metrics of {system or 'any system'} in {place}", file=sys.stderr)
                return 1
    wrong = sorted(set(sides[0]) ^ set(sides[1]))
    worst = 0.0
    for name in sorted(set(sides[0]) & set(sides[1])):
        difference = abs(sides[0][name] - sides[1][name])
        if not math.isfinite(difference) or difference > TOLERANCE:
            wrong.append(f"{name}: {sides[0][name]!r} in containers, {sides[1][name]!r} by DVC")
        worst = max(worst, difference)
    for line in wrong:
        print(line)
    beyond = f"{len(wrong)} beyond {TOLERANCE:g} or missing"
    print(f"{len(sides[0])} metrics, largest difference {worst:.3g}, {beyond}")
    return 1 if wrong else 0


if __name__ == "__main__":
    if len(sys.argv) < 3:
        sys.exit("usage: python docker/compare.py RUN METRICS [SYSTEM ...]")
    sys.exit(main(Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3:]))
