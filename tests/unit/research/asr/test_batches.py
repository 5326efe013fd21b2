"""Every pass hears each utterance once, with others of its length; what CTC cannot align is left out."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.torch

from voxveil.corpus.split import Utterance
from voxveil.research.asr.batches import Batches, Reader, Said, fitting
from voxveil.research.asr.tokens import learn_tokens
from voxveil.research.asr.train import Augmentation
from voxveil.runtime.errors import InputError


def made(count: int) -> list[Said]:
    rng = np.random.default_rng(count)
    return [Said(f"u{n:03d}", "s", int(rng.integers(16_000, 160_000)), (3,)) for n in range(count)]


@pytest.mark.parametrize("count", [1, 7, 50])
def test_a_pass_holds_everything_once(count: int) -> None:
    said = made(count)
    batches = Batches(said, 40.0, 1, "test")
    for number in range(3):
        steps = range(number * len(batches), (number + 1) * len(batches))
        heard = Counter(each.id for step in steps for each in batches.of_step(step))
        assert heard == Counter(each.id for each in said)
    in_order = [each for index in range(len(batches)) for each in batches.in_order(index)]
    assert [each.samples for each in in_order] == sorted(each.samples for each in said)
    for index in range(len(batches)):
        batch = batches.in_order(index)
        assert len(batch) == 1 or len(batch) * batch[-1].samples <= 40 * 16_000


def test_a_step_depends_on_the_seed_alone() -> None:
    one, same, other = (Batches(made(50), 40.0, seed, "test") for seed in (1, 1, 2))
    steps = range(2 * len(one))
    assert [one.of_step(step) for step in steps] == [same.of_step(step) for step in reversed(steps)][::-1]
    assert [one.of_step(step) for step in steps] != [other.of_step(step) for step in steps]


def test_an_utterance_longer_than_a_batch_is_one() -> None:
    batches = Batches([Said("long", "s", 16_000 * 90, (3,)), Said("short", "s", 16_000, (3,))], 10.0, 1, "t")
    assert {len(batches.of_step(step)) for step in range(2)} == {1}


def test_what_cannot_be_aligned_is_left_out() -> None:
    tokens = learn_tokens(["aab"], 0)
    # 0.4 s are 41 frames of 10 ms, 11 of 40 ms.
    texts = {"fits": "ab" * 5, "double": "a" * 7, "long": "ab" * 6, "silent": "...", "other": ""}
    speech = [Utterance(name, "s", "F", 6_400, text) for name, text in texts.items()]
    kept = fitting([*speech, Utterance("slow", "s", "F", 64_000, "ab")], tokens, max_seconds=3, fastest=1)
    assert [each.id for each in kept] == ["fits"]
    with pytest.raises(InputError, match="no utterance of 1 can be trained on"):
        fitting(speech[:1], tokens, max_seconds=3, fastest=1.2)


def test_audio_is_filled_up_with_silence() -> None:
    clips = {"a": np.ones(5, np.float32), "b": np.ones(8, np.float32)}
    batch = [Said("a", "s", 5, (3,)), Said("b", "s", 8, (3,))]
    with Reader(clips.__getitem__, 2) as reader:
        for _ in range(2):
            audio, samples = reader.audio(batch, batch)
            assert audio.tolist() == [[1.0] * 5 + [0.0] * 3, [1.0] * 8]
            assert samples.tolist() == [5, 8]


def test_a_faster_tone_is_shorter_and_higher() -> None:
    time = torch.arange(16_000) / 16_000
    tone = torch.sin(2 * torch.pi * 400 * time)[None].repeat(2, 1)
    augmentation = Augmentation((1.0, 0.8, 1.25), spec_augment=False)
    seen = set()
    for seed in range(12):
        torch.manual_seed(seed)
        played, samples = augmentation.played(tone, torch.tensor([16_000, 8_000]))
        speed = 16_000 / int(samples[0])
        assert speed in (1.0, 0.8, 1.25)
        assert int(samples[1]) == 8_000 / speed
        assert abs(played.shape[1] - int(samples[0])) <= 1
        spectrum = torch.fft.rfft(played[0, : int(samples[0])]).abs()
        assert int(spectrum.argmax()) * 16_000 / int(samples[0]) == pytest.approx(400 * speed, rel=0.01)
        seen.add(speed)
    assert seen == {1.0, 0.8, 1.25}


def test_spectra_are_masked_only_where_asked_for() -> None:
    normal = torch.ones(2, 200, 80)
    assert torch.equal(Augmentation((1.0,), spec_augment=False).masked(normal.clone()), normal)
    masked = Augmentation((1.0,), spec_augment=True).masked(normal.clone())
    zero = masked == 0
    assert zero.all(dim=2).any(dim=1).all()
    assert zero.all(dim=1).any(dim=1).all()
    assert 0.2 < float(zero.float().mean()) < 0.95
