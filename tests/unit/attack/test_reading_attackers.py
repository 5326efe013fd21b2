"""Attackers of words and of rhythm: vectors, defined results without words, independence of other clips."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from made_voices import voice, write_voices
from voxveil.attack import recognized
from voxveil.attack.attackers.interface import (
    Attacker,
    Conditions,
    TrainingSetup,
    embed_utterances,
    score_trials,
)
from voxveil.attack.attackers.registry import load_attacker, train_attacker
from voxveil.attack.attackers.rhythm import Durations, rhythm_values
from voxveil.attack.attackers.words import TextWeights
from voxveil.attack.rank import draw_rank_protocol
from voxveil.attack.recognized import PhoneTimes, RecognizedSpeech, WordSource
from voxveil.attack.scenarios import Plan, Scenario, run_scenarios, write_attack
from voxveil.attack.transcripts import score_transcripts
from voxveil.config.networks import TrainAttackerParams
from voxveil.corpus.alignment import Aligner, Alignment
from voxveil.corpus.phones import PHONES
from voxveil.corpus.split import Phone, Split
from voxveil.corpus.trials import draw_trials
from voxveil.metrics.attacked import evaluate_attack
from voxveil.metrics.suite import SuiteOptions
from voxveil.runtime.errors import InputError, ParamsError

pytest.importorskip("torch")
pytest.importorskip("sklearn")
pytestmark = pytest.mark.torch

TOPICS = (
    "the old ship sailed",
    "snow fell on hills",
    "she baked warm bread",
    "iron wheels turned",
    "a dog ran",
)
PARAMS = TrainAttackerParams(lda=8)


class MadeRecognizer:
    """Returns words that depend on the loudest frequency, so on the speaker; none for silence."""

    def recognize(self, audio: np.ndarray, name: str) -> str:
        if not audio.any():
            return ""
        tone = int(np.abs(np.fft.rfft(audio[:8000])).argmax())
        topic = TOPICS[tone // 40 % len(TOPICS)]
        return f"{topic} {TOPICS[len(audio) // 80 % len(TOPICS)]}"


class MadeAligner(Aligner):
    """Returns phones whose durations depend on the loudest frequency; refuses clips of 9000 samples."""

    def __init__(self) -> None:
        pass

    def align(self, audio: np.ndarray, text: str, name: str) -> Alignment:
        if len(audio) == 9000:
            raise InputError(f"utterance {name}: its transcript does not fit its audio (no alignment)")
        tone = int(np.abs(np.fft.rfft(audio[:8000])).argmax())
        draw = np.random.default_rng(len(audio))
        phones, start = [], 0.0
        for label in ("SIL", *draw.choice(PHONES[1:], 12), "SIL", *draw.choice(PHONES[1:], 8)):
            seconds = 0.05 * (1 + 0.002 * tone) * float(np.exp(draw.normal(0, 0.2)))
            phones.append(Phone(start, seconds, str(label)))
            start += seconds
        return Alignment(tuple(phones), np.zeros(1, np.int16))


@pytest.fixture(autouse=True)
def made(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(recognized, "open_recognizer", lambda _: MadeRecognizer())
    monkeypatch.setattr(recognized, "Aligner", MadeAligner)
    recognized._opened.cache_clear()
    yield
    recognized._opened.cache_clear()


@pytest.fixture(scope="module")
def public(tmp_path_factory: pytest.TempPathFactory) -> Split:
    return write_voices(tmp_path_factory.mktemp("public"), range(6), 4, seconds=0.6)


@pytest.fixture(params=["words", "rhythm"])
def attacker(request: pytest.FixtureRequest, public: Split) -> Attacker:
    return train_attacker(request.param, public, TrainingSetup(PARAMS, "anonymized", 3)).attacker


def clips() -> dict[str, np.ndarray]:
    return {f"{s}-{i}": voice(s, i, 9600 + 80 * i) for s in range(20, 26) for i in range(20)}


def test_ten_trials_score_alike_alone_shuffled_and_among_others(attacker: Attacker) -> None:
    speech = clips()
    enrolments = {str(s): [f"{s}-0", f"{s}-1"] for s in range(20, 26)}
    ten = [(str(20 + k % 6), f"{20 + k // 2}-{2 + k % 3}") for k in range(10)]
    more = [(name, item) for name in enrolments for item in list(speech)[2::7]][:100]
    orders: tuple[Sequence[tuple[str, str]], ...] = (ten, ten[::-1], [*more, *ten])
    found = []
    for pairs in orders:
        recognized._opened.cache_clear()
        items = dict.fromkeys([*(i for name, _ in pairs for i in enrolments[name]), *(i for _, i in pairs)])
        vectors = embed_utterances(attacker, list(items), speech.__getitem__)
        scores = score_trials(vectors, enrolments, pairs, attacker.backend)
        by_pair = dict(zip(pairs, scores, strict=True))
        found.append(np.array([by_pair[pair] for pair in ten]))
    assert np.ptp(found[0]) > 0.01
    assert np.abs(found[1] - found[0]).max() <= 1e-6
    assert np.abs(found[2] - found[0]).max() <= 1e-6


def test_loading_gives_the_same_attacker(attacker: Attacker, tmp_path: Path) -> None:
    attacker.save(tmp_path)
    again = load_attacker(tmp_path)
    assert (again.name, again.training, list(again.speakers)) == (
        attacker.name,
        "anonymized",
        [f"s{n:02d}" for n in range(6)],
    )
    clip = voice(30, 0, 9680)
    assert np.array_equal(attacker.embed(clip, "clip"), again.embed(clip, "clip"))
    for path in tmp_path.glob("*.npz"):
        path.unlink()
    with pytest.raises(InputError):
        load_attacker(tmp_path)


def test_a_clip_without_result_has_a_defined_vector(attacker: Attacker) -> None:
    silence = attacker.embed(np.zeros(9600, np.float32), "silence")
    assert np.array_equal(silence, attacker.blank)
    if attacker.name == "rhythm":
        assert np.array_equal(attacker.embed(voice(1, 0, 9000), "not aligned"), attacker.blank)
    assert not np.array_equal(attacker.embed(voice(1, 0, 9600), "speech"), attacker.blank)
    with pytest.raises(InputError, match="utterance u1: no samples"):
        attacker.embed(np.zeros(0, np.float32), "utterance u1")
    with pytest.raises(InputError, match="the embeddings of all 3 utterances are equal"):
        embed_utterances(attacker, ["a", "b", "c"], lambda _: np.zeros(9600, np.float32))


def test_utterances_without_result_stay_in_the_trials_and_are_counted(
    attacker: Attacker, tmp_path: Path
) -> None:
    split = write_voices(tmp_path / "private", range(30, 36), 4, seconds=0.6)
    lists = draw_trials(split, 2, seed=1)
    speaker_of = {item.id: item.speaker for item in split}
    plan = Plan(lists, draw_rank_protocol(lists.enrolments, speaker_of, 2, 1))
    silent = lists.trial_utterances[0]

    def read(item: str) -> np.ndarray:
        return np.zeros(9600, np.float32) if item == silent else split.audio(item)

    state = "anonymized"
    scenario = Scenario("semi_informed", {attacker.name: [attacker]}, state, state, state, read, read, plan)
    (scored,) = run_scenarios([scenario], lambda what, total: lambda done: None)
    assert scored.blank == 1
    assert len(scored.scores) == len(lists.trials)
    write_attack(tmp_path / attacker.name / "semi_informed", scored, lists, speaker_of)
    _, shown = evaluate_attack(tmp_path / attacker.name / "semi_informed", SuiteOptions(replicates=0))
    (text,) = [w["text"] for w in shown["warnings"] if w["code"] == "utterances_without_result"]
    assert text.startswith("1 utterances gave the attacker nothing to compare")


def test_public_speech_that_never_aligns_is_refused(public: Split, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(MadeRecognizer, "recognize", lambda *_: "")
    with pytest.raises(InputError, match=r"attacker rhythm: none of 24 public utterances of .* could be"):
        train_attacker("rhythm", public, TrainingSetup(PARAMS, "original", 3))


@pytest.mark.parametrize(
    ("name", "error", "reason"),
    [
        ("", ParamsError, r"train_attacker\.words_recognizer: is empty; must be pocketsphinx or the folder"),
        ("nowhere", InputError, r"train_attacker\.words_recognizer: .*nowhere: no such folder"),
    ],
)
def test_a_wrong_recognizer_is_named(name: str, error: type[Exception], reason: str) -> None:
    with pytest.raises(error, match=reason):
        WordSource.named(TrainAttackerParams(words_recognizer=name))


def test_recognition_is_done_once_for_several_attackers() -> None:
    calls = []

    class Counting(MadeRecognizer):
        def recognize(self, audio: np.ndarray, name: str) -> str:
            calls.append(name)
            return super().recognize(audio, name)

    speech = RecognizedSpeech(Counting(), MadeAligner())
    clip = voice(1, 0, 9600)
    assert speech.words(clip, "a") == speech.words(clip.copy(), "b")
    assert speech.phones(clip, "c") is speech.phones(clip, "d")
    assert calls == ["a"]


WORDS = st.lists(st.text("abc'", min_size=1, max_size=4), max_size=6)


@given(st.lists(WORDS, min_size=1, max_size=4), WORDS)
def test_vectors_of_text_are_those_of_scikit_learn(public_texts: list[list[str]], words: list[str]) -> None:
    """Its TfidfTransformer on the same counts, each analysis by itself, is the oracle."""
    from sklearn.feature_extraction.text import HashingVectorizer, TfidfTransformer

    weights = TextWeights.learn(public_texts)
    parts = []
    for analysis in (
        {"analyzer": "char_wb", "ngram_range": (2, 5)},
        {"analyzer": "word", "ngram_range": (1, 2), "token_pattern": r"\S+"},
    ):
        counts = HashingVectorizer(n_features=2**14, alternate_sign=False, norm=None, **analysis)
        fitted = TfidfTransformer(sublinear_tf=True).fit(
            counts.transform([" ".join(w) for w in public_texts])
        )
        parts.append(fitted.transform(counts.transform([" ".join(words)])).toarray()[0])
    whole = np.concatenate(parts)
    expected = whole / max(float(np.linalg.norm(whole)), 1e-12)
    assert np.allclose(weights.vector(words), expected, atol=1e-6)


def test_a_term_that_public_text_lacks_counts_most() -> None:
    weights = TextWeights.learn([["the", "sea"], ["the", "hill"], ["the", "dog"]])
    valjean, said = weights.vector(["the", "valjean", "slept"]), weights.vector(["and", "valjean", "woke"])
    common = weights.vector(["the", "table", "broke"])
    assert valjean @ said > 2 * (valjean @ common)


def test_durations_are_predicted_from_phone_and_neighbours() -> None:
    """Durations made as sums of known effects leave residuals of the noise that was added."""
    draw = np.random.default_rng(5)
    effect = draw.normal(0, 0.5, len(PHONES))
    made = []
    for _ in range(300):
        labels = np.concatenate(
            [[0], draw.integers(1, len(PHONES), 15), [0], draw.integers(1, len(PHONES), 9)]
        )
        before_pause = np.append(labels[1:] == 0, True)
        logs = np.log(0.08) + effect[labels] + 0.3 * before_pause + draw.normal(0, 0.1, len(labels))
        made.append(PhoneTimes(labels, np.exp(logs)))
    durations = Durations.fit(made)
    scores = np.concatenate([durations.residuals(clip)[1] for clip in made])
    assert abs(float(scores.mean())) < 0.02
    assert 0.9 < float(scores.std()) < 1.1
    assert np.allclose(durations.deviation[1:], 0.1, atol=0.02)
    # Somebody who lengthens every phone by a tenth is 0.95 deviations slow in each of them.
    slow = [PhoneTimes(clip.labels, 1.1 * clip.seconds) for clip in made]
    moved = np.mean([rhythm_values(clip, durations)[:39] for clip in slow], axis=0)
    assert (moved > np.mean([rhythm_values(clip, durations)[:39] for clip in made], axis=0)).all()


@given(st.lists(st.tuples(st.integers(0, len(PHONES) - 1), st.floats(0.005, 2.0)), max_size=30))
def test_rhythm_of_any_phones_is_finite(phones: list[tuple[int, float]]) -> None:
    labels = np.array([label for label, _ in phones], np.int64)
    clip = PhoneTimes(labels, np.array([seconds for _, seconds in phones]))
    durations = Durations(np.full(len(PHONES) + 16, -1.0), np.ones(len(PHONES)))
    values = rhythm_values(clip, durations)
    assert values.shape == (70,)
    assert np.isfinite(values).all()


def test_pauses_at_the_ends_count_for_nothing() -> None:
    durations = Durations(np.full(len(PHONES) + 16, -1.0), np.ones(len(PHONES)))
    inner = PhoneTimes(np.array([3, 8, 0, 12, 30]), np.array([0.1, 0.05, 0.3, 0.08, 0.2]))
    padded = PhoneTimes(np.array([0, 3, 8, 0, 12, 30, 0]), np.array([0.9, 0.1, 0.05, 0.3, 0.08, 0.2, 0.7]))
    assert np.allclose(rhythm_values(inner, durations), rhythm_values(padded, durations))


def test_the_words_alone_are_scored_without_speech(tmp_path: Path) -> None:
    split = write_voices(tmp_path / "private", range(30, 34), 4, seconds=0.1)
    lists = draw_trials(split, 2, seed=1)
    speaker_of = {item.id: item.speaker for item in split}
    plan = Plan(lists, draw_rank_protocol(lists.enrolments, speaker_of, 2, 1))
    texts = {item: f"{TOPICS[int(name[1:]) - 30]} number {item[-1]}" for item, name in speaker_of.items()}
    public = {str(n): f"number {n} of the common words" for n in range(9)}
    scored = score_transcripts(texts, public, plan)
    assert scored is not None and scored.blank == 0
    assert scored.conditions == Conditions("words_alone", *["transcripts"] * 4)
    target = np.array([trial.target for trial in lists.trials])
    assert scored.scores[target].min() > scored.scores[~target].max()
    assert (
        scored.ranks.scores.argmax(axis=1)
        == np.searchsorted(scored.ranks.reference_labels, scored.ranks.input_labels)
    ).all()
    assert score_transcripts(texts, {}, plan) is None
    del texts[lists.trial_utterances[0]]
    assert score_transcripts(texts, public, plan) is None
