"""The content extractor: what it releases, with which noise, and what it refuses."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from voxveil.audio.frames import frame_count
from voxveil.config.features import ContentVariant
from voxveil.features.content.extractor import ContentExtractor
from voxveil.features.content.model import ContentModel, ContentSize
from voxveil.privacy import PublicNoise, Released, SystemNoise, content_mechanism
from voxveil.runtime.errors import InputError, PrivacyError
from voxveil.training.checkpoint import write_trained
from voxveil.training.loop import seeded

pytestmark = pytest.mark.torch
PHONES = ("SIL", "A", "B")
SIZE = ContentSize(bottleneck=12, hidden=16, factor=6, layers=2, classes=3)


class Recorder:
    """A seeded source that remembers what was asked of it."""

    secret = False

    def __init__(self) -> None:
        self.asked: list[tuple[tuple[int, ...], float]] = []
        self._source = PublicNoise(1, "recorded")

    def laplace(self, shape: tuple[int, ...], scale: float) -> np.ndarray:
        self.asked.append((shape, scale))
        return self._source.laplace(shape, scale)


def content_model() -> ContentModel:
    with seeded(1, "test"):
        return ContentModel(SIZE)


def write(folder: Path, mechanism: str, epsilon: float, prefix: str = "") -> Path:
    facts = {
        "kind": "content",
        "mechanism": mechanism,
        "epsilon": epsilon,
        "size": SIZE.to_json(),
        "phones": list(PHONES),
        "class_phones": list(range(len(PHONES))),
        "every": 1,
    }
    write_trained(folder, content_model(), facts, [{"step": 1, "loss": 1.0}], {})
    for name in ("model.json", "model.safetensors"):
        (folder / name).rename(folder / f"{prefix}{name}")
    return folder


def speech(samples: int, key: int = 0) -> np.ndarray:
    return (0.1 * np.random.default_rng(key).standard_normal(samples)).astype(np.float32)


@pytest.mark.parametrize("mechanism", ["identity", "laplace"])
@pytest.mark.parametrize("samples", [1, 159, 160, 4000])
def test_every_released_vector_has_norm_one(tmp_path: Path, mechanism: str, samples: int) -> None:
    folder = write(tmp_path, mechanism, 10.0 * (mechanism == "laplace"))
    released = ContentExtractor.load(folder).release(speech(samples), SystemNoise())
    assert isinstance(released, Released)
    assert released.value.shape == (frame_count(samples), SIZE.bottleneck)
    assert released.value.dtype == np.float32
    assert np.abs(released.value).sum(axis=1) == pytest.approx(1.0, abs=1e-5)
    assert released.loss.unit == "vector" and released.loss.unbounded == (mechanism == "identity")


@pytest.mark.parametrize("epsilon", [0.5, 1.0, 2.0, 1000.0])
def test_noise_has_scale_two_over_epsilon_whatever_the_network(tmp_path: Path, epsilon: float) -> None:
    recorder = Recorder()
    released = ContentExtractor.load(write(tmp_path, "laplace", epsilon, "c-"), "c-").release(
        speech(3200), recorder
    )
    assert recorder.asked == [((21, SIZE.bottleneck), 2.0 / epsilon)]
    assert (released.loss.epsilon, released.loss.sensitivity) == (epsilon, 2.0)


def test_noise_is_on_in_train_and_eval_mode_alike() -> None:
    found = []
    for mode in (True, False):
        recorder = Recorder()
        extractor = ContentExtractor(
            content_mechanism(ContentVariant("laplace", 3.0)), content_model().train(mode), PHONES, range(3)
        )
        found.append((recorder.asked, extractor.release(speech(3200), recorder).value))
    assert found[0][0] == found[1][0] != []
    assert (found[0][1] == found[1][1]).all()


def test_silence_takes_the_same_noisy_path(tmp_path: Path) -> None:
    recorder = Recorder()
    extractor = ContentExtractor.load(write(tmp_path, "laplace", 10.0))
    extractor.release(np.zeros(3200, np.float32), recorder)
    assert recorder.asked == [((21, SIZE.bottleneck), 0.2)]


def test_a_broken_network_releases_nothing() -> None:
    """norm1 would make a NaN vector look like the fixed unit vector."""
    model = content_model()
    with torch.no_grad():
        model.bottleneck.bias.fill_(float("nan"))
    for variant in (ContentVariant(), ContentVariant("laplace", 3.0)):
        with pytest.raises(PrivacyError, match="NaN"):
            ContentExtractor(content_mechanism(variant), model, PHONES, range(len(PHONES))).release(
                speech(800), SystemNoise()
            )


def test_one_utterance_does_not_change_the_next(tmp_path: Path) -> None:
    extractor = ContentExtractor.load(write(tmp_path, "identity", 0.0))
    before = extractor.release(speech(3200), SystemNoise()).value
    extractor.release(100 * speech(8000, key=2), SystemNoise())
    assert (extractor.release(speech(3200), SystemNoise()).value == before).all()


def test_posteriors_are_a_function_of_released_vectors_alone(tmp_path: Path) -> None:
    extractor = ContentExtractor.load(write(tmp_path, "laplace", 10.0))
    value = extractor.release(speech(3200), PublicNoise(1, "u")).value
    posteriors = extractor.log_posteriors(value)
    assert posteriors.shape == (21, 3) and extractor.phones == PHONES
    assert np.exp(posteriors).sum(axis=1) == pytest.approx(1.0, abs=1e-5)
    assert (extractor.log_posteriors(value) == posteriors).all()


def test_what_cannot_be_used_is_named(tmp_path: Path) -> None:
    folder = write(tmp_path, "laplace", 10.0)
    extractor = ContentExtractor.load(folder)
    for mechanism in ("identity", "laplace"):
        other = ContentExtractor.load(write(tmp_path / mechanism, mechanism, 10.0 * (mechanism == "laplace")))
        with pytest.raises(InputError, match="NaN"):
            other.release(np.array([0.0, np.nan] * 200), SystemNoise())
    for audio in (np.zeros(0), np.zeros((2, 300))):
        with pytest.raises(InputError, match="one channel"):
            extractor.release(audio, SystemNoise())
    for value in (np.zeros((3, 5)), np.zeros(12), np.zeros((0, 12))):
        with pytest.raises(InputError, match=r"\(K, 12\)"):
            extractor.log_posteriors(value)
    content = json.loads((folder / "model.json").read_text())
    for change, words in (
        ({"kind": "pitch"}, "format 1"),
        ({"phones": ["SIL"]}, r"phones of \(3,\) classes"),
        ({"class_phones": [0, 1]}, r"phones of \(2,\) classes for a model of 3"),
        ({"size": {**content["size"], "hidden": 17}}, "does not fit"),
        ({"size": {"hidden": 17}}, "wrong sizes"),
    ):
        (folder / "model.json").write_text(json.dumps({**content, **change}))
        with pytest.raises(InputError, match=words):
            ContentExtractor.load(folder)
    with pytest.raises(InputError, match=r"nowhere/model\.json"):
        ContentExtractor.load(tmp_path / "nowhere")
