"""Real-time factors on one core: F0 tracking beside AMFM_decompy's, McAdams, and a model if one is given.

OMP_NUM_THREADS=1 python benchmarks/speech/speed.py RECORDINGS [MODEL]
"""

from __future__ import annotations

import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np

from voxveil.audio.files import read_recording
from voxveil.audio.frames import SAMPLE_RATE
from voxveil.audio.mcadams import mcadams
from voxveil.features.pitch.yaapt import track_f0

FILES = 20


def published(audio: np.ndarray) -> None:
    """Track F0 with AMFM_decompy's pYAAPT."""
    import amfm_decompy.basic_tools as basic
    from amfm_decompy import pYAAPT

    pYAAPT.print = lambda *_: None
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        pYAAPT.yaapt(basic.SignalObj(audio.astype(np.float64), SAMPLE_RATE), f0_min=60.0, f0_max=400.0)


def factor(work: Callable[[np.ndarray], object], clips: list[np.ndarray]) -> float:
    """Return CPU seconds per second of speech, after one clip to warm up."""
    work(clips[0])
    began = time.process_time()
    for clip in clips:
        work(clip)
    return (time.process_time() - began) * SAMPLE_RATE / sum(map(len, clips))


def main() -> None:
    """Print a line for each."""
    paths = sorted(Path(sys.argv[1]).rglob("*.flac"))
    clips = [read_recording(path).audio for path in paths[:: max(1, len(paths) // FILES)][:FILES]]
    print(f"{len(clips)} recordings, {sum(map(len, clips)) / SAMPLE_RATE:.0f} s; CPU time / time of speech")
    print(f"  F0, AMFM_decompy   {factor(published, clips):.4f}")
    print(f"  F0, voxveil        {factor(track_f0, clips):.4f}")
    print(f"  McAdams            {factor(lambda clip: mcadams(clip, 0.7), clips):.4f}")
    if len(sys.argv) > 2:
        from voxveil.anonymize.anonymizer import Anonymizer
        from voxveil.training.loop import use_threads

        use_threads(1)
        anonymizer = Anonymizer.load(Path(sys.argv[2]))
        print(f"  {anonymizer.bundle.system:<18} {factor(anonymizer.anonymize_private, clips):.4f}")


if __name__ == "__main__":
    main()
