"""Audio at another rate was embedded as if it were 16 kHz, and nothing warned.

Seen in https://github.com/resemble-ai/Resemblyzer/issues/42,
https://github.com/PaddlePaddle/PaddleSpeech/issues/3181 and https://github.com/speechbrain/speechbrain/issues/1150.
"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import soundfile

from made_corpora import write_corpus, write_params
from made_voices import voice
from voxveil.audio.files import read_recording
from voxveil.cli.main import main
from voxveil.features.speaker.encoder import EncoderSize, SpeakerEncoder, SpeakerNetwork
from voxveil.training.loop import seeded


@pytest.mark.parametrize("speaker", [2, 7])
def test_one_recording_at_two_rates_is_one_voice(tmp_path: Path, speaker: int) -> None:
    soxr = pytest.importorskip("soxr")
    clip = voice(speaker, 0, 24_000)
    soundfile.write(tmp_path / "16.flac", clip, 16_000)
    soundfile.write(tmp_path / "48.flac", soxr.resample(clip, 16_000, 48_000), 48_000)
    with seeded(3, "test"):
        encoder = SpeakerEncoder(SpeakerNetwork(EncoderSize(16, 24)))
    low, high = (encoder.embed(read_recording(tmp_path / f"{rate}.flac").audio) for rate in (16, 48))
    assert float(low @ high) >= 0.98
    # As if it were 16 kHz: what the test would miss without a resampler.
    wrong = encoder.embed(np.asarray(soundfile.read(tmp_path / "48.flac")[0], np.float32))
    assert float(low @ wrong) < float(low @ high)


def test_8_khz_is_counted_as_band_limited(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    corpus = write_corpus(tmp_path / "corpus", each=2)
    path = corpus / "part/20/7/20-7-0000.flac"
    soundfile.write(path, soundfile.read(path)[0], 8_000)
    assert main(["corpus", "check", str(corpus)]) == 0
    assert ", 1 band_limited, 1 resampled" in capsys.readouterr().out
    params = write_params(tmp_path / "params.yaml", source=str(corpus))
    outputs = [f"--out={side}={tmp_path / 'out' / side}" for side in ("public", "private")]
    assert main(["stage", "prepare", "--params", str(params), *outputs]) == 0
    flags = [
        json.loads((tmp_path / f"out/{side}/corpus.json").read_text())["flags"]
        for side in ("public", "private")
    ]
    assert sum(flag.get("band_limited", 0) for flag in flags) == 1
