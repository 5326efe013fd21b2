"""Peak memory and time of ``voxveil anonymize`` on a file of an hour that is made here.

python benchmarks/speech/long_file.py MODEL [SECONDS]
"""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import soundfile

from voxveil.audio.frames import SAMPLE_RATE
from voxveil.privacy.ledger import read_ledger

LIMIT_MB = 2_000


def speak(path: Path, seconds: int) -> None:
    """Write speech-like sound: a gliding pulse train with pauses, in noise."""
    rng = np.random.default_rng(0)
    phase = 0.0
    with soundfile.SoundFile(path, "w", SAMPLE_RATE, 1, format="FLAC") as file:
        for second in range(seconds):
            time_ = second + np.arange(SAMPLE_RATE) / SAMPLE_RATE
            passed = phase + np.cumsum(120 + 30 * np.sin(2 * np.pi * 0.3 * time_)) / SAMPLE_RATE
            phase = float(passed[-1])
            voice = sum(np.cos(2 * np.pi * k * passed) / k for k in range(1, 20))
            gate = (np.sin(2 * np.pi * 1.5 * time_) > -0.3) * 0.05
            file.write(gate * voice + 0.003 * rng.standard_normal(SAMPLE_RATE))


def main() -> int:
    """Print what the run took; 1 where it passed the limit or its output is not as long as its input."""
    model, seconds = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 3_600
    with tempfile.TemporaryDirectory() as folder:
        speak(Path(folder) / "long.flac", seconds)
        command = [
            sys.executable,
            "-m",
            "voxveil.cli.main",
            "anonymize",
            "long.flac",
            "out.flac",
            "--threads",
            "1",
        ]
        began = time.monotonic()
        environment = {**os.environ, "VOXVEIL_LEDGER": f"{folder}/ledger"}
        model = str(Path(model).resolve())
        subprocess.run([*command, "--model", model], cwd=folder, env=environment, check=True)
        wall = time.monotonic() - began
        peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
        samples = soundfile.info(f"{folder}/out.flac").frames
        (entry,) = read_ledger(Path(folder) / "ledger.json").entries
    print(f"{seconds} s: {wall:.0f} s, factor {wall / seconds:.3f}, peak {peak:.0f} MB")
    print(f"ledger: {entry.vectors} vectors, {entry.losses['pitch']}")
    return 0 if samples == seconds * SAMPLE_RATE and peak < LIMIT_MB else 1


if __name__ == "__main__":
    sys.exit(main())
