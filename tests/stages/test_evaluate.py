"""Stage evaluate on outputs with known contents."""

from __future__ import annotations

import json
import math
import shutil
from pathlib import Path

import pytest

from made_outputs import CORPUS, SYSTEMS, Made, evaluate, make_outputs
from voxveil.metrics.catalogue import METRICS
from voxveil.privacy.ledger import read_ledger
from voxveil.runtime.atomic import read_json, write_json
from voxveil.runtime.done import finish
from voxveil.runtime.errors import InputError
from voxveil.stages.evaluate import losses_projection, promise


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("made")
    make_outputs(root)
    for name in SYSTEMS:
        evaluate(root, name)
    return root


def one(tmp_path: Path, made: Made = SYSTEMS["anon_dp"], **options) -> Path:
    make_outputs(tmp_path, {"anon_dp": made}, **options)
    return tmp_path


def rewrite(folder: Path, name: str, content: object, stage: str) -> None:
    write_json(folder / name, content)
    (folder / "_DONE.json").unlink()
    finish(folder, stage, "anon_dp")


@pytest.mark.parametrize("system", SYSTEMS)
def test_it_writes_the_contract(root: Path, system: str) -> None:
    out = root / "outputs/evaluate" / system
    full = read_json(out / "ecapa-semi_informed.json")
    assert set(full) == {"trials", "metrics", "warnings"}
    assert set(full["metrics"]) == set(METRICS)
    assert full["trials"] == {"target": 32, "nontarget": 224, "speakers": 8}
    flat = read_json(out / f"{system}.metrics.json")
    assert flat == read_json(root / "metrics" / f"{system}.metrics.json")
    assert all(isinstance(value, float) and math.isfinite(value) for value in flat.values())
    assert flat["privacy/eer"] == full["metrics"]["eer"]["value"]
    assert flat["utility/per"] == SYSTEMS[system].per
    undefined = [name for name, entry in full["metrics"].items() if entry["value"] is None]
    assert flat["privacy/undefined"] == len(undefined)
    assert not any(f"privacy/{name}" in flat for name in undefined)


@pytest.mark.parametrize("system", SYSTEMS)
def test_the_utterance_epsilon_is_the_largest_over_tested_utterances(root: Path, system: str) -> None:
    """Literal oracle: pitch once, content once per vector, the largest over the trial side."""
    made = SYSTEMS[system]
    release = read_ledger(root / "outputs/anonymize" / system / "released/ledger.json")
    lines = (root / "outputs/score" / system / "ecapa/semi_informed/trials.txt").read_text().splitlines()
    tested = {line.split()[1] for line in lines}
    flat = read_json(root / "metrics" / f"{system}.metrics.json")
    assert 0 < len(tested) < len(release.entries)
    if not (made.pitch and made.content):
        assert "privacy/epsilon_utterance" not in flat
        return
    epsilons = [made.pitch + e.vectors * made.content for e in release.entries if e.input in tested]
    assert flat["privacy/epsilon_utterance"] == max(epsilons)
    assert (flat["privacy/epsilon_pitch"], flat["privacy/epsilon_content"]) == (made.pitch, made.content)


def test_an_untested_utterance_does_not_count(root: Path) -> None:
    release = read_ledger(root / "outputs/anonymize/anon_dp/released/ledger.json")
    shortest = min(release.entries, key=lambda entry: entry.vectors)
    found = promise(release, [shortest.input])
    assert found["utterance"]["epsilon"] == 10 + 10 * shortest.vectors
    assert found["utterance"]["utterances"] == 1
    assert found["streams"]["pitch"]["sensitivity"] == [16.0 * shortest.vectors] * 2
    assert f"K = {shortest.vectors} vectors" in found["passing"]


def test_the_summary_says_under_which_conditions(root: Path) -> None:
    summary = read_json(root / "outputs/evaluate/anon_dp/summary.json")
    (attack,) = summary["attacks"]
    assert (attack["attacker"], attack["scenario"]) == ("ecapa", "semi_informed")
    assert (attack["enrolment"], attack["trial"], attack["training"]) == ("anonymized",) * 3
    assert (attack["references"], attack["inputs"]) == (8, 32)
    assert sum(attack["rank_histogram"]) == pytest.approx(32)
    assert summary["corpus_synthetic"] is True
    assert summary["corpus"]["overlaps"] == CORPUS["overlaps"]
    for name, entry in attack["metrics"].items():
        few = entry["value"] is None and entry["note"].startswith("not enough trials")
        assert few == name.startswith("tpr_fpr"), name
        assert few or entry["null95"] is not None, name
    original = read_json(root / "outputs/evaluate/original/summary.json")
    assert original["promise"]["utterance"]["epsilon"] == "inf"
    assert original["promise"]["streams"]["pitch"]["sensitivity"] is None


def test_halving_epsilon_halves_what_is_written(tmp_path: Path) -> None:
    found = []
    for name, factor in (("a", 1.0), ("b", 0.5)):
        root = one(tmp_path / name, Made(0.3, pitch=10 * factor, content=10 * factor))
        evaluate(root, "anon_dp")
        found.append(read_json(root / "metrics/anon_dp.metrics.json"))
    for name in ("pitch", "content", "utterance"):
        assert found[1][f"privacy/epsilon_{name}"] == found[0][f"privacy/epsilon_{name}"] / 2


def test_equal_inputs_give_equal_bytes(root: Path) -> None:
    before = read_json(root / "outputs/evaluate/anon/_DONE.json")
    evaluate(root, "anon")
    assert read_json(root / "outputs/evaluate/anon/_DONE.json") == before


def test_an_undefined_value_is_null_and_the_others_survive(tmp_path: Path) -> None:
    root = one(tmp_path)
    per = {"value": None, "ci95": None, "unit": "%", "note": "no reference phones"}
    rewrite(root / "outputs/transcribe/anon_dp", "transcripts.json", {"per": per, "wer": None}, "transcribe")
    out = evaluate(root, "anon_dp")
    assert read_json(out / "summary.json")["utility"]["per"] == per
    flat = read_json(out / "anon_dp.metrics.json")
    assert "utility/per" not in flat
    assert "privacy/eer" in flat
    assert "NaN" not in "".join(path.read_text() for path in out.glob("*.json"))


def test_names_of_a_private_corpus_become_hashes_only_the_ledger_resolves(root: Path) -> None:
    release = read_ledger(root / "outputs/anonymize/anon_dp/released/ledger.json")
    hidden = losses_projection(release, public=False)
    names = [entry.input for entry in release.entries]
    text = json.dumps(hidden)
    assert not any(name in text for name in names)
    assert not any(entry.sha256 in text for entry in release.entries)
    ids = [row["utterance"] for row in hidden["entries"]]
    assert len(set(ids)) == len(names) > 0
    assert losses_projection(release, public=False) == hidden
    shown = losses_projection(release, public=True)
    assert [row["utterance"] for row in shown["entries"]] == sorted(names)
    totals = sorted(row["total"]["epsilon"] for row in hidden["entries"])
    assert totals == sorted(row["total"]["epsilon"] for row in shown["entries"])


def test_hashes_depend_on_what_only_the_holder_has(root: Path) -> None:
    import dataclasses

    release = read_ledger(root / "outputs/anonymize/anon_dp/released/ledger.json")
    first = release.entries[0]
    other = dataclasses.replace(
        release, entries=(dataclasses.replace(first, sha256="f" * 64), *release.entries[1:])
    )
    ids = [
        {row["utterance"] for row in losses_projection(each, public=False)["entries"]}
        for each in (release, other)
    ]
    assert ids[0] and ids[1] and not ids[0] & ids[1]


def test_facts_of_a_private_corpus_carry_no_name(tmp_path: Path) -> None:
    facts = {
        "public": False,
        "name": "Zanzibar",
        "skipped": 1,
        "speakers_without_voiced_frames": 1,
        "private_note": "Zanzibar",
    }
    out = evaluate(one(tmp_path, corpus=facts, samples=False), "anon_dp")
    corpus = read_json(out / "summary.json")["corpus"]
    assert (corpus["skipped"], corpus["speakers_without_voiced_frames"]) == (1, 1)
    assert not any("Zanzibar" in path.read_text() for path in out.glob("*.json"))


@pytest.mark.parametrize("name", ["skipped", "speakers_without_voiced_frames"])
def test_a_list_of_names_where_a_count_belongs_is_refused(tmp_path: Path, name: str) -> None:
    root = one(tmp_path, corpus={name: ["Zanzibar"]})
    with pytest.raises(InputError, match=f"{name} must be a count, got a list"):
        evaluate(root, "anon_dp")


def test_a_tested_utterance_outside_the_ledger_is_named(tmp_path: Path) -> None:
    root = one(tmp_path)
    folder = root / "outputs/anonymize/anon_dp/released"
    ledger = read_json(folder / "ledger.json")
    ledger["entries"] = [e for e in ledger["entries"] if e["input"] != "spk03-04"]
    rewrite(folder, "ledger.json", ledger, "anonymize")
    with pytest.raises(InputError, match=r"utterance spk03-04: tested, but not in the ledger.*1 missing"):
        evaluate(root, "anon_dp")
    assert not (root / "outputs/evaluate/anon_dp").exists()
    assert not (root / "metrics").exists() or not list((root / "metrics").iterdir())


def test_speech_of_another_system_is_refused(tmp_path: Path) -> None:
    root = one(tmp_path)
    make_outputs(tmp_path / "other", {"anon": SYSTEMS["anon"]})
    folder = root / "outputs/anonymize/anon_dp/released"
    shutil.rmtree(folder)
    shutil.copytree(tmp_path / "other/outputs/anonymize/anon/released", folder)
    with pytest.raises(
        InputError, match=r"input released: .* of anonymize\[anon\], must be .* of anonymize\[anon_dp\]"
    ):
        evaluate(root, "anon_dp")


def test_a_corpus_that_does_not_say_whether_it_is_public_is_refused(tmp_path: Path) -> None:
    root = one(tmp_path, corpus={"public": "yes"})
    with pytest.raises(InputError, match="public must be true or false, got 'yes'"):
        evaluate(root, "anon_dp")


def test_scores_that_were_never_made_are_missed(tmp_path: Path) -> None:
    root = one(tmp_path)
    folder = root / "outputs/score/anon_dp"
    shutil.rmtree(folder / "ecapa")
    (folder / "_DONE.json").unlink()
    finish(folder, "score", "anon_dp")
    with pytest.raises(InputError, match=r"no ATTACKER/SCENARIO/scores\.txt"):
        evaluate(root, "anon_dp")


def test_a_trial_without_score_is_named(tmp_path: Path) -> None:
    root = one(tmp_path)
    folder = root / "outputs/score/anon_dp"
    scores = folder / "ecapa/semi_informed/scores.txt"
    lines = scores.read_text().splitlines(keepends=True)
    scores.write_text("".join(lines[:-1]))
    (folder / "_DONE.json").unlink()
    finish(folder, "score", "anon_dp")
    with pytest.raises(InputError, match="no score for trial spk07 spk07-05"):
        evaluate(root, "anon_dp")
