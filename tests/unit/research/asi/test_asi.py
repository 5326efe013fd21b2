"""The identification attack: it finds speakers who can be found, and nobody where nothing tells."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from made_identities import SMALL, made_pitch, made_utterances, pooled_results
from voxveil.research.asi.identification import identify, pitch_features
from voxveil.research.asi.network import AsiNetwork, padded, statistics
from voxveil.research.asi.split import split_utterances
from voxveil.research.asi.statistics import utterance_statistics
from voxveil.runtime.errors import InputError
from voxveil.training.loop import seeded

pytestmark = [pytest.mark.torch, pytest.mark.usefixtures("one_thread")]

UTTERANCES = made_utterances(12, 6)
SPLIT = split_utterances(UTTERANCES, full=False, seed=5)


def test_positive_control_speakers_with_heights_of_their_own_are_found() -> None:
    points = []
    result = identify(
        made_pitch(UTTERANCES), SPLIT, SMALL, 5, sink=lambda step, values: points.append(values)
    )
    assert (result.speakers, result.trials, result.chance) == (12, 12, 1 / 12)
    assert result.ci95[0] > 2 * result.chance
    assert {"loss", "validation_loss", "validation_accuracy"} <= set(points[-1])
    best = min(result.curve, key=lambda point: point["validation_miss"])
    assert result.steps == best["step"]
    assert result.hits == max(result.hits_by_attacker.values())
    assert result.to_json()["hits_by_attacker"] == result.hits_by_attacker


def test_negative_control_nobody_is_found_where_nothing_tells() -> None:
    utterances = made_utterances(10, 20)
    split = split_utterances(utterances, full=True, seed=5)
    features = made_pitch(utterances, telling=False)
    result = pooled_results([identify(features, split, SMALL, seed) for seed in (5, 6, 7)])
    assert (result.trials, result.draws) == (60, 3)
    assert result.ci95[0] <= result.chance <= result.ci95[1]


def test_shuffled_labels_are_at_chance_though_training_learns_them() -> None:
    items = [item for each in UTTERANCES.values() for item in each]
    mixed = np.random.default_rng(3).permutation(items).reshape(len(UTTERANCES), -1)
    wrong = dict(zip(UTTERANCES, mixed.tolist(), strict=True))
    results = [
        identify(made_pitch(UTTERANCES), split_utterances(wrong, full=False, seed=seed), SMALL, seed)
        for seed in (5, 6)
    ]
    result = pooled_results(results)
    assert result.ci95[0] <= result.chance <= result.ci95[1]


def test_the_same_seed_gives_the_same_attack_and_the_mapping_is_a_constant_function() -> None:
    features = made_pitch(UTTERANCES)
    first = identify(features, SPLIT, SMALL, 5)
    second = identify(lambda item, draw: features[item], SPLIT, SMALL, 5)
    assert first.curve == second.curve
    assert first.speaker_hits.tolist() == second.speaker_hits.tolist()


def test_training_draws_anew_and_a_tested_utterance_is_released_once() -> None:
    features = made_pitch(UTTERANCES)
    asked: dict[str, list[int]] = {}

    def fresh(item: str, draw: int) -> np.ndarray:
        asked.setdefault(item, []).append(draw)
        return features[item]

    identify(fresh, SPLIT, SMALL, 5)
    held = [item for part in (SPLIT.validation, SPLIT.test) for items in part.values() for item in items]
    assert all(asked[item] == [0] for item in held)
    trained = [asked[item] for items in SPLIT.training.values() for item in items]
    # Once for the statistics, then once a pass.
    assert all(draws[0] == 0 and draws[1:] == list(range(len(draws) - 1)) for draws in trained)
    assert max(len(draws) for draws in trained) > 10


def test_groups_of_frames_are_averaged(monkeypatch) -> None:
    """What the network gets is compared, bit by bit; what it makes of it depends on the processor."""
    # Multiples of 1/1024: their sums are exact, so only the division rounds, whoever averages.
    features = {item: np.round(value * 1024) / 1024 for item, value in made_pitch(UTTERANCES).items()}
    by_hand = {}
    for item, value in features.items():
        groups = [value[start : start + 3].mean(axis=0) for start in range(0, len(value), 3)]
        by_hand[item] = np.stack(groups).astype(np.float32)
    assert {len(value) % 3 for value in features.values()} == {0, 1, 2}

    def given(features: dict[str, np.ndarray], group: int) -> tuple[list, list]:
        batches: list[tuple[torch.Tensor, ...]] = []
        described: list[np.ndarray] = []

        class Watched(AsiNetwork):
            def forward(self, features: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
                batches.append((features.clone(), mask.clone(), self.mean, self.sd))
                return super().forward(features, mask)

        def describe(frames: np.ndarray) -> np.ndarray:
            described.append(frames)
            return utterance_statistics(frames)

        monkeypatch.setattr("voxveil.research.asi.identification.AsiNetwork", Watched)
        params = replace(SMALL, group=group, steps=4, crop_frames=20)
        identify(features, SPLIT, params, 5, describe=describe)
        return batches, described

    batches, described = given(features, 3)
    batches_by_hand, described_by_hand = given(by_hand, 1)
    # Each step, and after it the validation utterances; at the end the test utterances.
    assert len(batches) == len(batches_by_hand) == 9
    for got, wanted in zip(batches, batches_by_hand, strict=True):
        assert all(torch.equal(one, other) for one, other in zip(got, wanted, strict=True))
    assert len(described) == len(described_by_hand) > 4 * SMALL.batch
    assert all(map(np.array_equal, described, described_by_hand))
    ungrouped, _ = given(features, 1)
    assert not torch.equal(batches[0][0], ungrouped[0][0])


def test_padding_and_company_change_nothing() -> None:
    with seeded(1, "network"):
        model = AsiNetwork(torch.tensor([0.4, 0.6]), torch.tensor([0.3, 0.5]), 8, 5)
        for norm in model.norms:
            norm.running_mean.uniform_(-1, 1)
    model.eval()
    rng = np.random.default_rng(2)
    rows = [rng.random((frames, 2), dtype=np.float32) for frames in (31, 80, 7)]
    with torch.no_grad():
        together = model(*padded(rows))
        alone = torch.cat([model(*padded([row])) for row in rows])
    assert torch.allclose(together, alone, atol=1e-5)
    assert torch.allclose(together.exp().sum(dim=1), torch.ones(3), atol=1e-5)


def test_statistics_are_literal() -> None:
    rows = [np.random.default_rng(3).normal(size=(n, 4)).astype(np.float32) for n in (9, 4)]
    features, mask = padded(rows)
    found = statistics(features.transpose(1, 2), mask.unsqueeze(1)).numpy()
    for row, value in zip(rows, found, strict=True):
        # What counts as rounding is added to the variance.
        deviation = np.sqrt(row.astype(np.float64).var(axis=0) + 1e-4)
        assert value == pytest.approx(np.r_[row.mean(axis=0), deviation], abs=1e-5)


def test_pitch_features_hold_the_released_value_and_its_voicing() -> None:
    found = pitch_features(np.array([0.0, 0.05, 0.1, 0.2, 0.9]))
    assert found[:, 0] == pytest.approx([0.0, 0.05, 0.1, 0.2, 0.9])
    assert found[:, 1].tolist() == [0.0, 0.0, 1.0, 1.0, 1.0]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda f: f.pop("s03-2"), "utterance s03-2 has no features"),
        (lambda f: f.update({"s03-2": np.zeros(7)}), r"s03-2: features must be \(K, 2\).*got \(7,\)"),
        (lambda f: f.update({"s03-2": np.zeros((0, 2))}), r"s03-2: features must be .*got \(0, 2\)"),
        (lambda f: f.update({"s03-2": np.zeros((5, 3))}), r"s03-2: features must be .*got \(5, 3\)"),
        (lambda f: f.update({"s03-2": np.full((5, 2), np.nan)}), "s03-2: features have NaN"),
    ],
)
def test_features_that_cannot_be_used_are_named(change, words: str) -> None:
    features = made_pitch(UTTERANCES)
    change(features)
    with pytest.raises(InputError, match=words):
        identify(features, SPLIT, SMALL, 5)


def test_speakers_whom_the_network_learns_by_heart_are_found_by_their_statistics() -> None:
    """Early stopping by the loss kept the first weights here, and what they missed passed for privacy."""
    rng = np.random.default_rng(7)
    utterances = made_utterances(24, 4)
    voice = {speaker: 0.4 * rng.normal(size=40) for speaker in utterances}
    features = {
        item: (voice[speaker] + rng.normal(size=(60, 40))).astype(np.float32)
        for speaker, items in utterances.items()
        for item in items
    }
    result = identify(features, split_utterances(utterances, full=False, seed=5), SMALL, 5)
    assert result.hits_by_attacker["statistics"] >= 20
    assert result.hits == max(result.hits_by_attacker.values())


def test_a_constant_network_ranks_as_chance_does() -> None:
    from voxveil.research.asi.identification import _Judged, _Reader

    items = [(f"u{k}", k) for k in range(5)]
    features = {item: np.zeros((4, 3), np.float32) for item, _ in items}
    model = AsiNetwork(torch.zeros(3), torch.ones(3), 8, 5).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.zero_()
    judged = _Judged(_Reader(features, 1, "asi"), items, torch.device("cpu"))
    assert judged.figures(model)["validation_miss"] == pytest.approx(1 - 1 / 3)
