import json
import sys
from pathlib import Path

import numpy as np
import pytest

from made_voices import voice
from voxveil.audio.files import read_recording
from voxveil.features.speaker.clips import MINIMUM_SAMPLES, at_least_minimum
from voxveil.features.speaker.encoder import EncoderSize, SpeakerEncoder, SpeakerNetwork
from voxveil.runtime.errors import InputError
from voxveil.training.loop import seeded

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.torch


@pytest.fixture(scope="module")
def encoder() -> SpeakerEncoder:
    with seeded(3, "test"):
        return SpeakerEncoder(SpeakerNetwork(EncoderSize(16, 24)))


@pytest.mark.parametrize("samples", [1, 160, 400, 800, MINIMUM_SAMPLES, 16_159, 40_000])
def test_every_length_has_a_finite_unit_embedding(encoder: SpeakerEncoder, samples: int) -> None:
    vector = encoder.embed(voice(1, 0, samples))
    assert vector.shape == (24,)
    assert vector.dtype == np.float32
    assert np.linalg.norm(vector) == pytest.approx(1.0, abs=1e-6)


def test_silence_has_an_embedding(encoder: SpeakerEncoder) -> None:
    assert np.isfinite(encoder.embed(np.zeros(9000, np.float32))).all()


@pytest.mark.parametrize(
    ("audio", "reason"),
    [
        (np.zeros(0, np.float32), "no samples"),
        (np.zeros((2, 9000), np.float32), "mono"),
        (np.array([0.1, np.nan], np.float32), "NaN"),
        (np.array([np.inf] * 9000, np.float32), "infinity"),
    ],
)
def test_what_cannot_be_embedded_is_refused_by_name(
    encoder: SpeakerEncoder, audio: np.ndarray, reason: str
) -> None:
    with pytest.raises(InputError, match=f"utterance u7.*{reason}"):
        encoder.embed(audio, "utterance u7")


def test_a_short_clip_is_repeated_and_a_long_one_is_not() -> None:
    short = np.arange(3000, dtype=np.float32)
    tiled = at_least_minimum(short, "x")
    assert np.array_equal(tiled, np.concatenate([short, short, short[:2000]]))
    long = np.arange(9000, dtype=np.float32)
    assert np.array_equal(at_least_minimum(long, "x"), long)


def test_what_is_embedded_beside_a_clip_does_not_move_it(encoder: SpeakerEncoder) -> None:
    clips = [(str(n), voice(n, 0, n)) for n in (7000, 12_345, 48_000)]
    together = list(encoder.embed_many(clips))
    for (_, clip), vector in zip(clips, together, strict=True):
        assert np.array_equal(encoder.embed(clip), vector)


def test_gain_does_not_matter(encoder: SpeakerEncoder) -> None:
    clip = voice(2, 0, 20_000)
    assert float(encoder.embed(clip) @ encoder.embed(0.25 * clip)) > 0.99


def test_a_recording_at_another_rate_is_the_same_voice(encoder: SpeakerEncoder, tmp_path: Path) -> None:
    soundfile, soxr = pytest.importorskip("soundfile"), pytest.importorskip("soxr")
    clip = voice(2, 0, 20_000)
    soundfile.write(tmp_path / "high.wav", soxr.resample(clip, 16_000, 48_000), 48_000, subtype="FLOAT")
    high = read_recording(tmp_path / "high.wav").audio
    assert float(encoder.embed(clip) @ encoder.embed(high)) >= 0.98


def test_a_saved_encoder_embeds_the_same(encoder: SpeakerEncoder, tmp_path: Path) -> None:
    encoder.save(tmp_path, {"note": "kept"})
    clip = voice(5, 1, 18_000)
    assert np.array_equal(SpeakerEncoder.load(tmp_path).embed(clip), encoder.embed(clip))
    assert json.loads((tmp_path / "model.json").read_text())["note"] == "kept"
    again = tmp_path / "again"
    again.mkdir()
    SpeakerEncoder.load(tmp_path).save(again, {"note": "kept"})
    for name in ("model.json", "model.safetensors"):
        assert (again / name).read_bytes() == (tmp_path / name).read_bytes()


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"kind": "resnet"}, "not a speaker encoder"),
        ({"kind": "x-vector"}, "model.safetensors: does not fit"),
        ({"format": 2}, "format 1"),
        ({"channels": "many"}, "whole numbers"),
        ({"channels": 24}, "model.safetensors: does not fit"),
    ],
)
def test_another_model_is_refused(
    encoder: SpeakerEncoder, tmp_path: Path, change: dict[str, object], reason: str
) -> None:
    encoder.save(tmp_path)
    path = tmp_path / "model.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **change}))
    with pytest.raises(InputError, match=reason):
        SpeakerEncoder.load(tmp_path)


def test_missing_files_are_named(encoder: SpeakerEncoder, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="model.json: no such file"):
        SpeakerEncoder.load(tmp_path)
    encoder.save(tmp_path)
    (tmp_path / "model.safetensors").unlink()
    with pytest.raises(InputError, match="model.safetensors: no such file"):
        SpeakerEncoder.load(tmp_path)


def test_building_a_network_leaves_no_module_that_breaks_introspection(encoder: SpeakerEncoder) -> None:
    loaded = [module for name, module in list(sys.modules.items()) if name.startswith("speechbrain")]
    assert loaded, "the network is SpeechBrain's"
    for module in loaded:
        getattr(module, "__file__", None)
