"""Training the acoustic model through its noise."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from tests.made_phones import phone_speech

import voxveil.features.content.train as training
from voxveil.audio.frames import frame_count
from voxveil.config.features import ContentVariant, TrainContentParams
from voxveil.corpus.phones import PHONES
from voxveil.features.content.labels import frame_labels
from voxveil.features.content.model import FactorizedLayer, norm1_torch, orthogonality_error
from voxveil.features.content.train import (
    LabelledUtterance,
    frame_accuracy,
    mel_features,
    noise_share,
    train_content,
)
from voxveil.privacy import PublicNoise
from voxveil.runtime.errors import InputError
from voxveil.training.loop import Plan

pytestmark = [pytest.mark.torch, pytest.mark.usefixtures("one_thread")]


def params(epsilon: float = 0.0, **more: float) -> tuple[TrainContentParams, ContentVariant]:
    variant = ContentVariant("laplace" if epsilon else "identity", epsilon)
    chosen = {"bottleneck": 16, "hidden": 32, "factor": 12, "layers": 2, "steps": 40, "chunk_frames": 60}
    return TrainContentParams(**{**chosen, **more}), variant


@pytest.fixture(scope="module")
def utterances() -> list[LabelledUtterance]:
    made = []
    for speaker in range(5):
        for number in range(4):
            audio, _, phones = phone_speech(speaker, number)
            labels = frame_labels(phones, frame_count(len(audio)), PHONES, "u")
            made.append(LabelledUtterance(f"{speaker}-{number}", f"s{speaker}", mel_features(audio), labels))
    return made


def unseen() -> list[tuple[np.ndarray, np.ndarray, PublicNoise]]:
    made = []
    for number in range(4):
        audio, _, phones = phone_speech(9, number)
        labels = frame_labels(phones, frame_count(len(audio)), PHONES, "u")
        made.append((audio, labels, PublicNoise(1, "unseen", number)))
    return made


def test_it_learns_and_large_noise_takes_it_away(utterances: list[LabelledUtterance]) -> None:
    commonest = int(np.bincount(np.concatenate([u.labels for u in utterances])).argmax())
    plain = train_content(utterances, PHONES, range(len(PHONES)), *params(), "v", 3)
    clear = frame_accuracy(plain.extractor, unseen(), commonest)
    noisy = frame_accuracy(
        train_content(utterances, PHONES, range(len(PHONES)), *params(0.1), "v", 3).extractor,
        unseen(),
        commonest,
    )
    assert clear.all > 0.6 > clear.chance and clear.speech > 0.5
    assert noisy.speech < 0.35
    assert clear.frames == sum(len(labels) for _, labels, _ in unseen())
    layers = [layer for layer in plain.model.modules() if isinstance(layer, FactorizedLayer)]
    assert layers and all(orthogonality_error(layer) < 0.1 for layer in layers)


def test_bfloat16_learns_too_and_leaves_noise_norms_and_weights_as_they_are(
    monkeypatch: pytest.MonkeyPatch, utterances: list[LabelledUtterance]
) -> None:
    seen = []

    def watched(vectors: torch.Tensor) -> torch.Tensor:
        seen.append(vectors.dtype)
        return norm1_torch(vectors)

    monkeypatch.setattr(training, "norm1_torch", watched)
    half = train_content(utterances, PHONES, range(len(PHONES)), *params(1000.0, bf16=True), "v", 3)
    assert set(seen) == {torch.float32}
    assert {p.dtype for p in half.model.parameters()} == {torch.float32}
    accuracy = frame_accuracy(half.extractor, unseen(), 0)
    assert accuracy.all > 0.6
    whole = train_content(utterances, PHONES, range(len(PHONES)), *params(1000.0), "v", 3)
    assert any(
        not torch.equal(a, b) for a, b in zip(half.model.parameters(), whole.model.parameters(), strict=True)
    ), "bfloat16 was not used"


def test_input_statistics_are_constants_of_the_training_speech(utterances: list[LabelledUtterance]) -> None:
    model = train_content(utterances, PHONES, range(len(PHONES)), *params(steps=1), "v", 3).model
    frames = torch.cat([u.mel for u in utterances]).double().numpy()
    assert model.mean.numpy() == pytest.approx(frames.mean(axis=0), abs=1e-4)
    assert model.sd.numpy() == pytest.approx(frames.std(axis=0), rel=1e-3)


@pytest.mark.parametrize("batch", [2, 8])
def test_training_noise_is_per_utterance_and_step_whatever_the_batch(
    monkeypatch: pytest.MonkeyPatch, utterances: list[LabelledUtterance], batch: int
) -> None:
    drawn: dict[tuple, float] = {}

    class Watched(PublicNoise):
        def __init__(self, seed: int, *keys: str | int) -> None:
            super().__init__(seed, *keys)
            self.keys = keys

        def laplace(self, shape: tuple[int, ...], scale: float) -> np.ndarray:
            assert self.keys not in drawn, "noise drawn twice from one stream"
            drawn[self.keys] = scale
            return super().laplace(shape, scale)

    monkeypatch.setattr(training, "PublicNoise", Watched)
    train_content(
        utterances, PHONES, range(len(PHONES)), *params(5.0, steps=4, batch=batch, noise_rise=0.5), "v", 3
    )
    assert len(drawn) == 4 * batch
    for keys, scale in drawn.items():
        share = {0: 1 / 30, 1: 30**-0.5}.get(keys[3], 1.0)
        assert scale == pytest.approx(2 / 5.0 * share)


def test_training_noise_reaches_its_full_scale() -> None:
    rising = [noise_share(step, params(steps=100, noise_rise=0.8)[0]) for step in range(100)]
    assert rising == sorted(rising) and rising[0] == pytest.approx(1 / 30)
    assert rising[79] < 1.0 and set(rising[80:]) == {1.0}
    assert {noise_share(step, params(steps=10, noise_rise=0.0)[0]) for step in range(10)} == {1.0}


def test_equal_seeds_train_equal_models(utterances: list[LabelledUtterance]) -> None:
    trained = [
        train_content(utterances, PHONES, range(len(PHONES)), *params(10.0, steps=3), "v", seed)
        for seed in (3, 3, 4)
    ]
    states = [t.model.state_dict() for t in trained]
    assert all(torch.equal(states[0][k], states[1][k]) for k in states[0])
    assert any(not torch.equal(states[0][k], states[2][k]) for k in states[0])


@pytest.mark.parametrize("stop_at", [5, 8])
def test_a_resumed_training_ends_where_an_uninterrupted_one_does(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, utterances: list[LabelledUtterance], stop_at: int
) -> None:
    """The move towards semi-orthogonal factors changes weights outside the optimizer, keyed by step too."""

    def stop(step: int, values: dict[str, float]) -> None:
        if step == stop_at:
            raise KeyboardInterrupt

    monkeypatch.setattr(training, "Plan", partial(Plan, checkpoint_seconds=0.0))
    chosen = params(10.0, steps=11)
    whole = train_content(utterances, PHONES, range(len(PHONES)), *chosen, "v", 3)
    with pytest.raises(KeyboardInterrupt):
        train_content(
            utterances, PHONES, range(len(PHONES)), *chosen, "v", 3, checkpoints=tmp_path, sink=stop
        )
    assert list(tmp_path.iterdir())
    resumed = train_content(utterances, PHONES, range(len(PHONES)), *chosen, "v", 3, checkpoints=tmp_path)
    assert resumed.curve == whole.curve
    state, expected = resumed.model.state_dict(), whole.model.state_dict()
    assert all(torch.equal(state[name], expected[name]) for name in expected)


def test_chunks_shorter_than_asked_are_padded_not_dropped(utterances: list[LabelledUtterance]) -> None:
    trained = train_content(
        utterances[:3], PHONES, range(len(PHONES)), *params(steps=2, chunk_frames=1000, batch=3), "v", 3
    )
    assert np.isfinite([point["loss"] for point in trained.curve]).all()


def test_nothing_to_learn_from_is_said(utterances: list[LabelledUtterance]) -> None:
    with pytest.raises(InputError, match=r"train_content\[v\]"):
        train_content([], PHONES, range(len(PHONES)), *params(), "v", 3)
    extractor = train_content(utterances, PHONES, range(len(PHONES)), *params(steps=1), "v", 3).extractor
    with pytest.raises(InputError, match="no utterance"):
        frame_accuracy(extractor, [], 0)
