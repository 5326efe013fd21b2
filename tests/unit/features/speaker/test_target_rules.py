"""Rules that look at the speaker: what they choose, that they cost everything, and that the table says so."""

from __future__ import annotations

import itertools
from pathlib import Path

import numpy as np
import pytest
import torch

from made_speech import CORPUS, SYSTEMS, E, speak, write_models, write_speaker_model
from voxveil.anonymize.anonymizer import Anonymizer
from voxveil.anonymize.bundle import read_bundle, write_bundle
from voxveil.config.model import SystemParams
from voxveil.features.speaker.pool import Pool, PoolEntry, build_pool, speaker_means
from voxveil.features.speaker.targets import Source, TargetRule, select_target
from voxveil.results.wording import plain_promise, total_text
from voxveil.runtime.errors import InputError

pytestmark = pytest.mark.torch

FACTS = {key: CORPUS[key] for key in ("name", "synthetic", "public", "revision")}


@pytest.fixture(scope="module")
def pool() -> Pool:
    rng = np.random.default_rng(2)
    entries = []
    for voice in range(24):
        centre = rng.standard_normal(E)
        for number in range(2):
            vector = centre + 0.05 * rng.standard_normal(E)
            f0 = speak(100.0 + 5 * voice, 8_000)[1]
            unit = (vector / np.linalg.norm(vector)).astype(np.float32)
            entries.append(PoolEntry(f"v{voice}-{number}", f"v{voice:02}", "FM"[voice % 2], unit, f0))
    return build_pool(entries)


def voice(key: int) -> np.ndarray:
    vector = np.random.default_rng(key).standard_normal(E)
    return (vector / np.linalg.norm(vector)).astype(np.float32)


def test_the_default_rule_never_looks_at_the_source(pool: Pool) -> None:
    sources = [Source(), Source("F", voice(1)), Source("M", voice(2))]
    targets = [select_target(pool, np.random.default_rng(7), 3, source=source) for source in sources]
    assert all(np.array_equal(target.embedding, targets[0].embedding) for target in targets)
    assert TargetRule().tells == ""


def test_farthest_averages_half_of_the_far_half(pool: Pool) -> None:
    rule, source = TargetRule("farthest"), Source(voice=voice(3))
    names, means = speaker_means(pool.embeddings, pool.speakers.tolist())
    far = [names[i] for i in np.argsort(means @ source.voice)[:12]]
    target = select_target(pool, np.random.default_rng(0), 5, rule, source)
    averages = {}
    for chosen in itertools.combinations(far, 6):
        mean = pool.embeddings[np.isin(pool.speakers, chosen)].mean(axis=0)
        averages[chosen] = float(mean @ target.embedding / np.linalg.norm(mean))
    assert max(averages.values()) == pytest.approx(1.0, abs=1e-5)
    likeness = [
        float(select_target(pool, np.random.default_rng(key), 5, rule, source).embedding @ source.voice)
        for key in range(20)
    ]
    plain = [
        float(select_target(pool, np.random.default_rng(key), 5).embedding @ source.voice)
        for key in range(20)
    ]
    assert np.mean(likeness) < np.mean(plain)


@pytest.mark.parametrize("choice", ["dense", "farthest"])
@pytest.mark.parametrize(
    ("sex", "source", "wanted"), [("same", "F", "F"), ("cross", "F", "M"), ("cross", "M", "F")]
)
def test_sex_is_that_asked_for(pool: Pool, choice: str, sex: str, source: str, wanted: str) -> None:
    rule = TargetRule(choice, sex=sex)
    rows = np.flatnonzero(pool.sexes == wanted)
    for key in range(10):
        target = select_target(pool, np.random.default_rng(key), 1, rule, Source(source, voice(4)))
        # A mean of ln F0 that only voices of that sex have, in their convex hull.
        assert pool.log_f0_mean[rows].min() <= target.log_f0_mean <= pool.log_f0_mean[rows].max()
        if choice == "dense":
            assert any(np.allclose(target.embedding, pool.embeddings[row], atol=1e-5) for row in rows)


def test_what_is_not_known_is_refused(pool: Pool) -> None:
    rng = np.random.default_rng(0)
    with pytest.raises(InputError, match="same sex: the speaker's sex is not known"):
        select_target(pool, rng, 1, TargetRule(sex="same"))
    with pytest.raises(InputError, match="its voice was not measured"):
        select_target(pool, rng, 1, TargetRule("farthest"))


@pytest.mark.parametrize(
    ("rule", "words"),
    [
        (TargetRule("farthest"), "the source's voice"),
        (TargetRule(level="speaker"), "which utterances share a speaker"),
        (TargetRule(sex="cross"), "the source's sex"),
        (TargetRule(sex="cross", sex_public=True), ""),
        (
            TargetRule("farthest", "speaker", "same"),
            "the source's voice and which utterances share a speaker",
        ),
    ],
)
def test_a_rule_says_what_it_tells(rule: TargetRule, words: str) -> None:
    assert words in rule.tells and bool(words) == bool(rule.tells)


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("models")
    write_models(folder)
    write_speaker_model(folder / "speaker")
    return folder


def bundle(folder: Path, models: Path, system: SystemParams, *, sex_public: bool = False) -> Path:
    parts = {"pitch": models / "pitch/dp", "content": models / "content/dp"}
    parts |= {name: models / name for name in ("speaker", "vocoder", "synthesis")}
    write_bundle(folder, "compared", system, parts, FACTS, sex_public=sex_public)
    return folder


FAR = SystemParams(pitch="dp", content="dp", target="farthest", target_level="speaker", target_sex="same")


def test_a_system_that_looks_promises_nothing_and_says_so(models: Path, tmp_path: Path) -> None:
    anonymizer = Anonymizer.load(bundle(tmp_path / "far", models, FAR))
    audio, f0 = speak(120.0, 8_000)
    source = anonymizer.source_of(audio, "F")
    made = anonymizer.anonymize_private(audio, f0=f0, source=source)
    assert dict(made.losses) == anonymizer.losses(8_000)
    assert made.losses["pitch"].epsilon == 10.0
    assert made.losses["target"].unbounded and made.utterance.unbounded
    assert "voice and which utterances share a speaker and the source's sex" in made.losses["target"].note
    streams = {name: loss.to_json() for name, loss in made.losses.items()}
    promise = {"streams": streams, "utterance": made.utterance.to_json()}
    summary = {"kind": "anonymized", "promise": promise}
    assert total_text(summary) == "∞ (no guarantee)"
    assert plain_promise(summary).startswith("No guarantee, for comparison only: the target tells")


def test_a_sex_that_is_public_costs_nothing(models: Path, tmp_path: Path) -> None:
    same = SystemParams(pitch="dp", content="dp", target_sex="same")
    costly = read_bundle(bundle(tmp_path / "a", models, same))
    free = read_bundle(bundle(tmp_path / "b", models, same, sex_public=True))
    assert "target" in costly.rule.losses(10) and "target" not in free.rule.losses(10)


def test_one_target_for_a_speaker_and_one_for_each_utterance(models: Path, tmp_path: Path) -> None:
    by_speaker = Anonymizer.load(bundle(tmp_path / "far", models, FAR))
    by_utterance = Anonymizer.load(bundle(tmp_path / "dp", models, SYSTEMS["anon_dp"]))
    for anonymizer, same in ((by_speaker, True), (by_utterance, False)):
        draws = [anonymizer.target_stream(1, f"u{number}", "s").integers(2**60) for number in range(4)]
        assert (len(set(draws)) == 1) == same
    others = {by_speaker.target_stream(1, "u", speaker).integers(2**60) for speaker in "abc"}
    assert len(others) == 3


def test_only_a_rule_that_asks_gets_the_voice(models: Path, tmp_path: Path) -> None:
    far = bundle(tmp_path / "far", models, FAR)
    plain = bundle(tmp_path / "dp", models, SYSTEMS["anon_dp"])
    assert (far / "speaker/model.safetensors").is_file() and not (plain / "speaker").exists()
    audio = speak(120.0, 8_000)[0]
    assert Anonymizer.load(plain).source_of(audio).voice is None
    found = Anonymizer.load(far).source_of(audio).voice
    assert found is not None and float(np.linalg.norm(found)) == pytest.approx(1.0, abs=1e-5)
    assert torch.is_tensor(torch.from_numpy(found))


def test_a_speaker_of_the_pool_is_not_anonymized(models: Path, tmp_path: Path) -> None:
    anonymizer = Anonymizer.load(bundle(tmp_path / "dp", models, SYSTEMS["anon_dp"]))
    anonymizer.require_disjoint(["p1", "p2"])
    with pytest.raises(InputError, match="speaker v3: is in the pool of targets of compared"):
        anonymizer.require_disjoint(["p1", "v3"])
