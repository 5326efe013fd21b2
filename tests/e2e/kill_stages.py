"""Kill every stage at a random write, run it again under DVC, compare its outputs.

Run by hand for figures (in a workspace where ``voxveil demo --scale tiny`` has finished):
    python tests/e2e/kill_stages.py WORKSPACE --times 5 --seed 1
"""

from __future__ import annotations

import argparse
import hashlib
import random
import shlex
import shutil
import subprocess
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

import workspace

from voxveil.stages.registry import STAGES

RUNNER = Path(__file__).with_name("killed_at_write.py")

_KEYS = {"": "", "system": "@anon", "pitch_variant": "@dp", "content_variant": "@dp"}

#: One instance of each stage and what must come back equal. The release of an identity system draws
#: no noise, but is a new release with a ledger of its own: there the audio itself is compared.
INSTANCES = {
    spec.name + _KEYS[spec.keyed]: True
    # Anonymize last: what reads a new release (its ledger has another id) would rightly differ after it.
    for spec in sorted(STAGES, key=lambda spec: spec.name == "anonymize")
}


def kill_once(root: Path, stage: str, chance: random.Random) -> dict[str, object]:
    """Kill one stage at a random write, then let DVC run it; return what was seen."""
    before = {**workspace.outputs(root, stage), **audio(root, stage)}
    command = shlex.split(workspace.locked(root)[stage]["cmd"])[1:]
    for path in workspace.outputs(root, stage):
        target = root / path
        shutil.rmtree(target) if target.is_dir() else target.unlink(missing_ok=True)
    limit = chance.randint(1, 40)
    while True:
        result = workspace.run(root, sys.executable, str(RUNNER), str(limit), *command, check=False)
        if result.returncode == -9:
            break
        if result.returncode != 0:
            raise AssertionError(f"{stage}: status {result.returncode}\n{result.stderr[-2000:]}")
        limit = chance.randint(1, int(result.stdout.split()[-1]))
    finished = [path for path in workspace.outputs(root, stage) if (root / path / "_DONE.json").is_file()]
    begun = time.monotonic()
    workspace.run(root, "dvc", "repro", "--no-run-cache", "--single-item", "--force", stage)
    after = {**workspace.outputs(root, stage), **audio(root, stage)}
    for each in (before, after):
        each.pop("outputs/anonymize/anon/released", None)
    leftovers = [path for top in ("outputs", "models") for path in (root / top).rglob("*.partial")]
    return {
        "stage": stage,
        "killed_at_write": limit,
        "finished_outputs_at_kill": len(finished),
        "equal": before == after,
        "seconds": time.monotonic() - begun,
        "leftovers": leftovers,
    }


def audio(root: Path, stage: str) -> dict[str, str]:
    """Return the digest of every audio shard among the outputs of a stage."""
    folders = [root / path for path in workspace.outputs(root, stage)]
    shards = [shard for folder in folders if folder.is_dir() for shard in sorted(folder.rglob("*.tar"))]
    return {str(shard.relative_to(root)): hashlib.sha256(shard.read_bytes()).hexdigest() for shard in shards}


def main() -> int:
    """Kill each stage several times and print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("workspace", type=Path)
    parser.add_argument("--times", type=int, default=5)
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    chance, failures = random.Random(args.seed), 0
    for stage, must_equal in INSTANCES.items():
        rows = [kill_once(args.workspace, stage, chance) for _ in range(args.times)]
        equal = sum(bool(row["equal"]) for row in rows)
        writes = ", ".join(str(row["killed_at_write"]) for row in rows)
        seconds = sum(float(str(row["seconds"])) for row in rows) / len(rows)
        bad = (must_equal and equal < len(rows)) or any(row["leftovers"] for row in rows)
        failures += bad
        verdict = "FAILED" if bad else "ok"
        print(
            f"{stage:24} killed at writes {writes:24} equal {equal}/{len(rows)}"
            f"  rerun {seconds:5.1f} s  {verdict}",
            flush=True,
        )
    subprocess.run(["git", "status", "--short"], cwd=args.workspace, check=False)
    return int(failures > 0)


if __name__ == "__main__":
    sys.exit(main())
