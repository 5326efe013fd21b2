"""A set with only unvoiced speech gave an empty mean of log F0.

Seen in https://github.com/RHVoice/RHVoice/pull/672 and
https://github.com/leimao/Voice-Converter-CycleGAN/issues/17: NaN crashed later, or log(0) was taken.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import soundfile

from voxveil.audio.files import read_recording
from voxveil.features.pitch.yaapt import track_f0
from voxveil.features.speaker.pool import FALLBACK_MEAN, FALLBACK_SD, Pool, PoolEntry, build_pool
from voxveil.features.speaker.targets import select_target

pytest.importorskip("sklearn")


@pytest.mark.parametrize("seed", [0, 1])
def test_one_speaker_of_one_utterance_of_white_noise(tmp_path: Path, seed: int) -> None:
    rng = np.random.default_rng(seed)
    soundfile.write(tmp_path / "noise.flac", rng.normal(0, 0.02, 32_000), 16_000)
    track = track_f0(read_recording(tmp_path / "noise.flac").audio)
    assert len(track) == 201
    embedding = np.full(4, 0.5, np.float32)
    build_pool([PoolEntry("n-0", "n", "F", embedding, track)]).save(tmp_path / "pool.npz")
    pool = Pool.load(tmp_path / "pool.npz")
    assert (pool.log_f0_mean[0], pool.log_f0_sd[0]) == (FALLBACK_MEAN, FALLBACK_SD)
    assert pool.unvoiced.tolist() == ["n"]
    target = select_target(pool, rng, 2)
    assert np.isfinite([target.log_f0_mean, target.log_f0_sd]).all()
