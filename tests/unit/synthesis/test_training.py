"""Training of vocoder and acoustic model on made speech: it learns, repeats, and redraws its noise."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest
import torch

from made_speech import E, M, write_models, write_speech
from voxveil.config.networks import SynthesisParams, TrainVocoderParams
from voxveil.corpus.split import Split
from voxveil.features.extraction import System
from voxveil.runtime.atomic import read_json, write_json
from voxveil.synthesis.speech import Crop, Speech, draw_crops, mel_statistics
from voxveil.synthesis.train_acoustic import AcousticData, measure, train_acoustic
from voxveil.synthesis.train_vocoder import copy_distance, train_vocoder
from voxveil.synthesis.vocoders import CopySynthesis, copy_synthesis

pytestmark = [pytest.mark.torch, pytest.mark.usefixtures("one_thread")]

VOCODER = TrainVocoderParams(channels=8, steps=12, batch=2, crop_frames=40, learning_rate=5e-3)
ACOUSTIC = SynthesisParams(channels=16, layers=2, steps=40, batch=4, crop_frames=40, learning_rate=5e-3)


@pytest.fixture(scope="module")
def split(tmp_path_factory: pytest.TempPathFactory) -> Split:
    folder = tmp_path_factory.mktemp("speech")
    write_speech(folder, dict.fromkeys("ab", (9600, 2400, 8159)))
    return Split(folder)


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("models")
    write_models(folder)
    return folder


def embed(audio: np.ndarray, name: str) -> np.ndarray:
    rng = np.random.default_rng(len(audio))
    vector = rng.standard_normal(E)
    return (vector / np.linalg.norm(vector)).astype(np.float32)


def data(split: Split, models: Path, variant: str = "dp") -> AcousticData:
    system = System.load(models / "pitch" / variant, models / "content" / variant)
    return AcousticData(Speech(split), system, embed, 1, "anon_dp")


def test_vocoder_learns_and_repeats(split: Split) -> None:
    speech = Speech(split)
    first, curve = train_vocoder(speech, split.utterances, VOCODER, 1)
    again, same = train_vocoder(speech, split.utterances, VOCODER, 1)
    assert curve == same
    assert curve[-1]["loss"] < curve[0]["loss"]
    for name, value in first.state_dict().items():
        torch.testing.assert_close(value, again.state_dict()[name], rtol=0, atol=0)
    assert 0 < copy_distance(first.eval(), speech, split.utterances) < 1.5
    one = speech[split.utterances[0].id]
    again = CopySynthesis(first)(one.audio, one.f0)
    np.testing.assert_array_equal(
        again, copy_synthesis(first, one.log_mel, one.f0, len(one.audio)), "mel and F0 are its own"
    )


def test_acoustic_model_learns_through_its_noise(split: Split, models: Path) -> None:
    features = data(split, models)
    model, curve = train_acoustic(features, split.utterances, ACOUSTIC, "anon_dp", 1)
    assert (model.size.content, model.size.embedding) == (M, E)
    assert curve[-1]["loss"] < 0.8 * curve[0]["loss"]
    measured = measure(model.eval(), features, split.utterances)
    assert np.isfinite(measured.mel_l1)
    assert 0 <= measured.voicing <= 1


def test_noise_is_redrawn_each_step_and_keyed_by_it(split: Split, models: Path) -> None:
    features = data(split, models)
    crops = [Crop("a-0", 3), Crop("b-0", 0)]
    first, second, again = (features.batch(crops, 20, "step", step) for step in (0, 1, 0))
    for position in (0, 1):
        assert not torch.equal(first[position], second[position])
        torch.testing.assert_close(first[position], again[position], rtol=0, atol=0)
    torch.testing.assert_close(first[0].abs().sum(dim=2), torch.ones(2, 20), atol=1e-5, rtol=0)
    for position in (2, 3, 4, 5):
        torch.testing.assert_close(first[position], second[position], rtol=0, atol=0)


def test_two_crops_of_one_utterance_do_not_share_their_noise(split: Split, models: Path) -> None:
    content, pitch, *_ = data(split, models).batch([Crop("a-0", 3)] * 2, 20, "step", 0)
    assert not torch.equal(content[0], content[1])
    assert not torch.equal(pitch[0], pitch[1])


def test_identity_features_are_what_a_release_gives(split: Split, models: Path) -> None:
    features = data(split, models, "plain")
    content, pitch, _, mel, voiced, mask = features.batch([Crop("a-0", 2)], 10, "x")
    system = System.load(models / "pitch/plain", models / "content/plain")
    from voxveil.privacy import PublicNoise

    released = system.release_features(split.audio("a-0"), split.f0("a-0"), PublicNoise(0))
    np.testing.assert_allclose(content[0].numpy(), released.content.value[2:12], atol=1e-6)
    np.testing.assert_allclose(pitch[0].numpy(), released.pitch.value[2:12], atol=1e-6)
    np.testing.assert_array_equal(voiced[0].numpy(), split.f0("a-0")[2:12] > 0)
    assert mask.all()
    assert mel.shape == (1, 10, 80)


def test_short_utterances_are_padded_and_masked(split: Split, models: Path) -> None:
    content, _, _, _, _, mask = data(split, models).batch([Crop("a-1", 0)], 40, "x")
    frames = split["a-1"].frames
    assert mask[0].sum() == frames
    assert not content[0, frames:].any()
    padded = Speech(split)["a-1"].padded(40)
    assert len(padded.f0) == len(padded.log_mel) == 40
    assert len(padded.audio) >= 160 * 39


def test_crops_depend_on_seed_and_step_only(split: Split) -> None:
    first = draw_crops(split.utterances, 40, 8, 1, "x", 5)
    assert first == draw_crops(split.utterances, 40, 8, 1, "x", 5)
    assert first != draw_crops(split.utterances, 40, 8, 1, "x", 6)
    assert all(crop.start + 40 <= max(40, split[crop.item].frames) for crop in first)


def test_mel_statistics_are_those_of_all_frames(split: Split) -> None:
    speech = Speech(split)
    mean, sd = mel_statistics(speech, split.utterances)
    frames = np.concatenate([speech[u.id].log_mel for u in split])
    np.testing.assert_allclose(mean, frames.mean(axis=0), atol=1e-3)
    np.testing.assert_allclose(sd, frames.std(axis=0), atol=1e-2)


@pytest.mark.parametrize(
    "variant",
    [
        {"mechanism": "randomized_response", "epsilon": 3.0},
        {"mechanism": "subset_selection", "epsilon": 1.0},
        {"mechanism": "gaussian", "epsilon": 0.0, "rho": 0.1},
    ],
    ids=lambda variant: str(variant["mechanism"]),
)
def test_every_content_mechanism_is_trained_through(
    split: Split, models: Path, tmp_path: Path, variant: dict[str, object]
) -> None:
    """What a synthesizer sees has the form and the fresh noise of a release."""
    content = tmp_path / "content"
    shutil.copytree(models / "content/dp", content)
    write_json(content / "model.json", {**read_json(content / "model.json"), **variant})
    features = AcousticData(Speech(split), System.load(models / "pitch/dp", content), embed, 1, "mine")
    crops = [Crop("a-0", 3), Crop("b-0", 0)]
    first, again, other = (features.batch(crops, 20, "step", step)[0] for step in (0, 0, 1))
    torch.testing.assert_close(first, again, rtol=0, atol=0)
    assert not torch.equal(first, other)
    torch.testing.assert_close(first.abs().sum(dim=2), torch.ones(2, 20))
