"""Pitch, content, spectrum and vocoder once disagreed by a frame, and outputs were short.

Seen in https://github.com/leimao/Voice-Converter-CycleGAN/issues/17 and
https://github.com/jik876/hifi-gan/issues/33. Here every stream has K = samples // 160 + 1 frames.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from made_speech import made_bundles
from voxveil.anonymize.anonymizer import Anonymizer
from voxveil.audio.frames import frame_count
from voxveil.audio.mel import log_mel
from voxveil.features.extraction import System
from voxveil.features.pitch.yaapt import track_f0
from voxveil.privacy import SystemNoise

pytestmark = pytest.mark.torch


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("made")
    made_bundles(folder)
    return folder


@pytest.mark.parametrize("samples", [15_999, 16_000, 16_001, 16_159])
def test_all_streams_have_equal_frames_and_the_output_its_input_s_samples(folder: Path, samples: int) -> None:
    tone = (0.3 * np.sin(2 * np.pi * 150 * np.arange(samples) / 16_000)).astype(np.float32)
    frames = frame_count(samples)
    f0 = track_f0(tone)
    system = System.load(folder / "models/pitch/dp", folder / "models/content/dp")
    features = system.release_features(tone, f0, SystemNoise())
    mel = log_mel(torch.from_numpy(tone)[None])[0]
    assert len(f0) == len(mel) == len(features.pitch.value) == len(features.content.value) == frames
    for name in ("anon", "anon_dp"):
        assert len(Anonymizer.load(folder / "bundles" / name).anonymize_private(tone).audio) == samples
