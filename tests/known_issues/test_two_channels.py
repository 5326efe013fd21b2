"""Two-channel files broke shapes, or each channel was taken as a sample.

Seen in https://github.com/yufan-aslp/AliMeeting/issues/1 and https://github.com/sp-uhh/sgmse/issues/47.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import soundfile
import torch

from made_corpora import vowel
from made_speech import made_bundles
from voxveil.audio.files import read_recording
from voxveil.audio.mel import log_mel
from voxveil.cli.main import main
from voxveil.features.pitch.yaapt import track_f0

pytestmark = pytest.mark.torch


def features(path: Path) -> tuple[np.ndarray, np.ndarray]:
    audio = read_recording(path).audio
    return track_f0(audio), log_mel(torch.from_numpy(audio)[None]).numpy()


def test_equal_channels_give_the_features_of_one(tmp_path: Path) -> None:
    audio = vowel(8_001)
    soundfile.write(tmp_path / "mono.flac", audio, 16_000)
    soundfile.write(tmp_path / "stereo.flac", np.stack([audio, audio], axis=1), 16_000)
    for mono, stereo in zip(
        features(tmp_path / "mono.flac"), features(tmp_path / "stereo.flac"), strict=True
    ):
        np.testing.assert_array_equal(mono, stereo)
    assert read_recording(tmp_path / "stereo.flac").flags == ("downmixed",)


@pytest.mark.parametrize("system", ["original", "anon"])
def test_other_channels_are_averaged_and_outputs_are_mono(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, system: str
) -> None:
    monkeypatch.setenv("VOXVEIL_LEDGER", str(tmp_path / "ledger"))
    made_bundles(tmp_path)
    left, right = vowel(8_001), vowel(8_001, 190.0)
    soundfile.write(tmp_path / "in.wav", np.stack([left, right], axis=1), 16_000, subtype="FLOAT")
    words = [
        str(tmp_path / "in.wav"),
        str(tmp_path / "out.flac"),
        "--model",
        str(tmp_path / "bundles" / system),
    ]
    assert main(["anonymize", *words]) == 0
    made, rate = soundfile.read(tmp_path / "out.flac")
    assert (made.shape, rate) == ((8_001,), 16_000)
    if system == "original":
        np.testing.assert_allclose(made, (left + right) / 2, atol=1 / 32768)
