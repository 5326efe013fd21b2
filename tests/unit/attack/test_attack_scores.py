import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from voxveil.attack.attackers.interface import Conditions, embed_utterances, score_trials
from voxveil.attack.backends import Cosine, unit_mean
from voxveil.attack.rank import draw_rank_protocol, score_ranks
from voxveil.attack.scenarios import Scored, write_attack
from voxveil.corpus.trials import Trial, TrialLists
from voxveil.runtime.errors import InputError

SPEAKERS = ("ann", "bob", "eve")


def made_embeddings() -> dict[str, np.ndarray]:
    draw = np.random.default_rng(2)
    vectors = {}
    for number, speaker in enumerate(SPEAKERS):
        for index in range(6):
            vector = np.eye(5)[number] + draw.normal(0, 0.3, 5)
            vectors[f"{speaker}-{index}"] = (vector / np.linalg.norm(vector)).astype(np.float32)
    return vectors


SPEAKER_OF = {item: item.split("-")[0] for item in made_embeddings()}
ENROLMENTS = {speaker: (f"{speaker}-0", f"{speaker}-3") for speaker in SPEAKERS}


def test_an_enrolment_is_the_unit_mean() -> None:
    vectors = made_embeddings()
    mean = (vectors["ann-0"].astype(float) + vectors["ann-3"]) / 2
    enrolled = np.stack([vectors[item] for item in ENROLMENTS["ann"]])
    assert np.allclose(unit_mean(enrolled), mean / np.linalg.norm(mean), atol=1e-12)
    opposite = np.array([[1.0, 0.0], [-1.0, 0.0]], np.float32)
    assert unit_mean(opposite).tolist() == [0.0, 0.0], "no direction is left, and no NaN"


def literal_cosine(a: np.ndarray, b: np.ndarray) -> float:
    a, b = a.astype(float), b.astype(float)
    return sum(x * y for x, y in zip(a, b, strict=True)) / (sum(a**2) ** 0.5 * sum(b**2) ** 0.5)


def test_trial_scores_are_literal_cosines_in_the_order_of_the_trials() -> None:
    vectors = made_embeddings()
    pairs = [("bob", "ann-1"), ("ann", "ann-1"), ("eve", "bob-5")]
    scores = score_trials(vectors, ENROLMENTS, pairs)
    for (name, item), score in zip(pairs, scores, strict=True):
        mean = np.mean([vectors[i].astype(float) for i in ENROLMENTS[name]], axis=0)
        assert score == pytest.approx(literal_cosine(mean, vectors[item]), abs=1e-6)
    assert scores[1] > scores[0]


@given(st.integers(1, 4), st.integers(1, 4), st.integers(0, 99))
def test_cosines_of_unit_vectors_lie_in_range(inputs: int, references: int, seed: int) -> None:
    draw = np.random.default_rng(seed)
    rows = draw.normal(size=(inputs + references, 7))
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    first, second = rows[:inputs], rows[inputs:]
    matrix = Cosine().matrix(first, [row[None] for row in second])
    assert matrix.shape == (inputs, references)
    assert np.abs(matrix).max() <= 1 + 1e-12
    assert np.allclose(matrix, Cosine().matrix(second, [row[None] for row in first]).T)


def test_each_utterance_is_embedded_once_and_by_name() -> None:
    class Counting:
        name = "counting"

        def __init__(self) -> None:
            self.seen: list[str] = []

        def embed(self, audio: np.ndarray, name: str) -> np.ndarray:
            self.seen.append(name)
            return audio

    attacker, done = Counting(), []
    vectors = embed_utterances(
        attacker, ["u1", "u2", "u1"], lambda item: np.array([float(item[1])]), done.append
    )
    assert attacker.seen == ["utterance u1", "utterance u2"]
    assert done == [1, 2]
    assert vectors["u2"].tolist() == [2.0]


def test_rank_inputs_never_are_enrolled_and_every_speaker_is_a_reference() -> None:
    protocol = draw_rank_protocol(ENROLMENTS, SPEAKER_OF, 3, seed=1)
    enrolled = {item for items in protocol.references.values() for item in items}
    inputs = [item for item, _ in protocol.inputs]
    assert not enrolled & set(inputs)
    assert len(set(inputs)) == len(inputs) == 9
    assert list(protocol.references) == sorted(SPEAKERS)
    assert all(SPEAKER_OF[item] == speaker for item, speaker in protocol.inputs)
    assert set(protocol.utterances) == enrolled | set(inputs)


def test_the_draw_of_a_speaker_depends_on_seed_and_speaker_only() -> None:
    whole = draw_rank_protocol(ENROLMENTS, SPEAKER_OF, 2, seed=1)
    without = {name: items for name, items in ENROLMENTS.items() if name != "bob"}
    part = draw_rank_protocol(without, SPEAKER_OF, 2, seed=1)
    assert [row for row in whole.inputs if row[1] != "bob"] == list(part.inputs)
    seeds = {draw_rank_protocol(ENROLMENTS, SPEAKER_OF, 2, seed=seed).inputs for seed in range(5)}
    assert len(seeds) > 1


def test_all_of_a_speakers_enrolments_make_one_reference() -> None:
    enrolments = {**ENROLMENTS, "ann-late": ("ann-1",)}
    protocol = draw_rank_protocol(enrolments, SPEAKER_OF, 9, seed=1)
    assert protocol.references["ann"] == ("ann-0", "ann-1", "ann-3")
    assert [item for item, speaker in protocol.inputs if speaker == "ann"] == ["ann-2", "ann-4", "ann-5"]


@pytest.mark.parametrize(
    ("enrolments", "reason"),
    [
        ({"ann": ("ann-0",)}, "1 enrolled speaker"),
        ({"x": ("ann-0", "bob-0")}, "enrolment x: its utterances are of 2 speakers"),
        (
            {"ann": ("ann-0",), "bob": tuple(f"bob-{i}" for i in range(6))},
            "speaker bob: no utterance besides",
        ),
    ],
)
def test_a_rank_protocol_that_cannot_be_is_refused(
    enrolments: dict[str, tuple[str, ...]], reason: str
) -> None:
    with pytest.raises(InputError, match=reason):
        draw_rank_protocol(enrolments, SPEAKER_OF, 2, seed=1)


def test_rank_scores_are_those_of_trials() -> None:
    vectors = made_embeddings()
    protocol = draw_rank_protocol(ENROLMENTS, SPEAKER_OF, 2, seed=1)
    ranks = score_ranks(vectors, protocol)
    pairs = [(speaker, item) for item, _ in protocol.inputs for speaker in protocol.references]
    expected = score_trials(vectors, ENROLMENTS, pairs).reshape(6, 3)
    assert np.allclose(ranks.scores, expected, atol=1e-12)
    assert ranks.reference_labels.tolist() == sorted(SPEAKERS)
    own = [ranks.reference_labels.tolist().index(label) for label in ranks.input_labels]
    assert (ranks.scores.argmax(axis=1) == own).mean() > 0.8


def made_lists() -> TrialLists:
    tried = [item for item in SPEAKER_OF if item[-1] not in "03"]
    trials = [Trial(name, item, SPEAKER_OF[item] == name) for name in SPEAKERS for item in tried]
    return TrialLists(ENROLMENTS, tuple(trials))


def write(folder: Path) -> Path:
    vectors, lists = made_embeddings(), made_lists()
    scores = score_trials(vectors, ENROLMENTS, [(t.enrolment, t.utterance) for t in lists.trials])
    ranks = score_ranks(vectors, draw_rank_protocol(ENROLMENTS, SPEAKER_OF, 2, seed=1))
    conditions = Conditions("ecapa", "semi_informed", "anonymized", "anonymized", "anonymized")
    write_attack(
        folder / "ecapa/semi_informed", Scored(conditions, scores, ranks), lists, SPEAKER_OF, short_clips=1
    )
    return folder / "ecapa" / "semi_informed"


def test_the_files_name_their_conditions_and_are_the_same_twice(tmp_path: Path) -> None:
    first, second = write(tmp_path / "1"), write(tmp_path / "2")
    names = sorted(path.name for path in first.iterdir())
    assert names == ["conditions.json", "enrol.scp", "rank.npz", "scores.txt", "trials.txt", "utt2spk"]
    for name in names:
        assert (first / name).read_bytes() == (second / name).read_bytes()
    conditions = json.loads((first / "conditions.json").read_text())
    assert conditions["attacker"] == "ecapa"
    assert conditions["enrolment"] == conditions["trial"] == conditions["training"] == "anonymized"
    assert conditions["counts"] == {
        "enrolments": 3,
        "rank_inputs": 6,
        "rank_references": 3,
        "short_clips_repeated": 1,
        "speakers": 3,
        "trials_nontarget": 24,
        "trials_target": 12,
    }
    assert (first / "scores.txt").read_text().splitlines()[0].split()[:2] == ["ann", "ann-1"]
