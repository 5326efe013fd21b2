import math
from pathlib import Path

import numpy as np
import pytest

from made_voices import write_voices
from voxveil.audio.files import encode_flac
from voxveil.audio.mel import log_mel, mel_filters
from voxveil.config.networks import SpeakerParams
from voxveil.corpus.split import Split, SplitWriter, Utterance
from voxveil.features.speaker.crops import SPEEDS, CropPlan, Crops
from voxveil.features.speaker.train import AngularMarginHead, train_encoder
from voxveil.runtime.errors import InputError, ParamsError

torch = pytest.importorskip("torch")
pytestmark = [pytest.mark.torch, pytest.mark.usefixtures("one_thread")]

SMALL = SpeakerParams(channels=16, embedding=16, steps=12, batch=8, crop_seconds=0.6, learning_rate=2e-3)


@pytest.fixture(scope="module")
def split(tmp_path_factory: pytest.TempPathFactory) -> Split:
    return write_voices(tmp_path_factory.mktemp("voices"), range(4), 3)


def plan(**changes: object) -> CropPlan:
    return CropPlan(**{"seed": 5, "name": "test", "batch": 6, "frames": 60, **changes})


def test_a_batch_depends_on_seed_name_and_step_only(split: Split) -> None:
    crops = Crops(split, plan())
    crops.batch(0)
    frames, labels = crops.batch(3)
    again, same = Crops(split, plan()).batch(3)
    assert np.array_equal(frames, again)
    assert np.array_equal(labels, same)
    assert frames.shape == (6, 60, 80)
    assert frames.dtype == np.float32
    for other in (plan(seed=6), plan(name="other")):
        assert not np.array_equal(Crops(split, other).batch(3)[0], frames)
    assert not np.array_equal(crops.batch(4)[0], frames)


def test_each_speed_makes_classes_of_its_own(split: Split) -> None:
    crops = Crops(split, plan(batch=12))
    assert crops.classes == 4 * len(SPEEDS)
    _, labels = crops.batch(0)
    assert sorted(labels) == list(range(12)), "a batch without replacement holds every class once"


def test_speed_moves_every_frequency_by_its_factor(tmp_path: Path) -> None:
    tones = (300.0, 500.0)
    with SplitWriter(tmp_path) as writer:
        for index, tone in enumerate(tones):
            audio = 0.3 * np.sin(2 * np.pi * tone * np.arange(24_000) / 16_000)
            writer.add(Utterance(f"t{index}", f"t{index}", "F", 24_000), encode_flac(audio, "tone")[0])
    crops = Crops(Split(tmp_path), plan(batch=6, frames=50))
    bands = {
        tone * speed: mel_filters()[:, round(tone * speed / 16_000 * 1024)]
        for tone in tones
        for speed in SPEEDS
    }
    for clip, label in zip(*crops.batch(1), strict=True):
        speed, speaker = divmod(int(label), 2)
        # The loudest band is the one whose filter answers most to the moved tone.
        loudest = int(clip[10:-10].mean(axis=0).argmax())
        assert abs(loudest - int(bands[tones[speaker] * SPEEDS[speed]].argmax())) <= 1


def test_utterances_shorter_than_a_crop_are_repeated(split: Split) -> None:
    frames, _ = Crops(split, plan(frames=260)).batch(0)
    assert frames.shape == (6, 260, 80)
    assert np.isfinite(frames).all()
    shortest = min(utterance.frames for utterance in split)
    assert shortest < 260, "the case needs an utterance shorter than the crop"


def test_frames_of_a_crop_are_those_of_the_utterance(split: Split) -> None:
    crops = Crops(split, plan(batch=12))
    frames, labels = crops.batch(2)
    plain = [clip for clip, label in zip(frames, labels, strict=True) if label < 4]
    whole = [log_mel(torch.from_numpy(split.audio(u.id))[None])[0].numpy() for u in split]
    for clip in plain:
        assert any(
            np.array_equal(clip, mel[start : start + 60]) for mel in whole for start in range(len(mel) - 59)
        )


def test_one_speaker_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="at least 2"):
        Crops(write_voices(tmp_path, range(1), 2), plan())


def test_a_crop_below_the_minimum_is_refused_by_its_parameter(split: Split) -> None:
    params = SpeakerParams(crop_seconds=0.3)
    with pytest.raises(ParamsError, match=r"train_attacker\.crop_seconds: got 0\.3, must be at least 0\.5"):
        train_encoder(split, params, name="train_attacker", seed=1)


def test_a_width_that_does_not_divide_is_refused_by_its_parameter(split: Split) -> None:
    with pytest.raises(ParamsError, match=r"train_speaker\.channels: got 18, must be a multiple of 4"):
        train_encoder(split, SpeakerParams(channels=18), name="train_speaker", seed=1)


def literal_margin_loss(cosines: np.ndarray, labels: np.ndarray, margin: float, scale: float) -> float:
    total = 0.0
    for row, label in zip(cosines, labels, strict=True):
        logits = [scale * value for value in row]
        angle = math.acos(row[label])
        past = angle + margin >= math.pi
        logits[label] = scale * (row[label] - margin * math.sin(margin) if past else math.cos(angle + margin))
        total += math.log(sum(math.exp(x) for x in logits)) - logits[label]
    return total / len(labels)


@pytest.mark.parametrize("strength", [0.0, 0.5, 1.0])
def test_margin_loss_is_the_literal_one(strength: float) -> None:
    draw = np.random.default_rng(4)
    cosines = draw.uniform(-0.95, 0.95, (7, 5))
    cosines[0, 2] = -0.999
    labels = np.array([2, 0, 1, 2, 3, 4, 0])
    head = AngularMarginHead(3, 5, margin=0.4, scale=10.0)
    got = head.loss(torch.tensor(cosines), torch.tensor(labels), strength)
    assert float(got) == pytest.approx(literal_margin_loss(cosines, labels, 0.4 * strength, 10.0), rel=1e-6)


def test_training_separates_the_voices(split: Split) -> None:
    params = SpeakerParams(channels=16, embedding=16, steps=40, batch=12, crop_seconds=0.5)
    result = train_encoder(split, params, name="train_speaker", seed=2)
    assert result.accuracy > 0.8
    assert result.curve[-1]["loss"] < 0.5 * result.curve[0]["loss"]
    vectors = np.stack([result.encoder.embed(split.audio(u.id)) for u in split])
    same = np.array([[a.speaker == b.speaker for b in split] for a in split])
    cosines = vectors @ vectors.T
    assert cosines[same].mean() > cosines[~same].mean() + 0.3


class Stopped(Exception):
    """Stands for a kill."""


def test_a_killed_training_resumes_to_the_same_model(
    split: Split, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = train_encoder(split, SMALL, name="train_attacker", seed=9)
    monkeypatch.setattr("voxveil.features.speaker.train.CHECKPOINT_SECONDS", 0.0)

    def stop(step: int, values: dict[str, float]) -> None:
        if step == 7:
            raise Stopped

    with pytest.raises(Stopped):
        train_encoder(split, SMALL, name="train_attacker", seed=9, checkpoints=tmp_path, sink=stop)
    seen: list[int] = []
    resumed = train_encoder(
        split,
        SMALL,
        name="train_attacker",
        seed=9,
        checkpoints=tmp_path,
        sink=lambda step, _: seen.append(step),
    )
    assert seen[0] > 1, "it did not start over"
    assert resumed.curve == whole.curve
    clip = split.audio("s00-0")
    assert np.array_equal(resumed.encoder.embed(clip), whole.encoder.embed(clip))
