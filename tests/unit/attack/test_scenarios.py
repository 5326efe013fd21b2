"""Scenarios on planted vectors: who sees what, seeds, fusion, and enrolment that was treated differently."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from voxveil.attack.attackers.interface import Conditions
from voxveil.attack.backends import Cosine
from voxveil.attack.fusion import fit_fusion
from voxveil.attack.rank import draw_rank_protocol
from voxveil.attack.scenarios import (
    Plan,
    Scenario,
    Scored,
    check_attackers,
    read_attack,
    run_scenarios,
    write_attack,
)
from voxveil.corpus.trials import Trial, TrialLists
from voxveil.metrics.attacked import add_convergence_warnings, evaluate_attack, independent_disclosure
from voxveil.metrics.suite import SuiteOptions
from voxveil.runtime.errors import InputError

SPEAKERS = [f"s{n:02d}" for n in range(20)]
SEX_OF = {name: "FM"[n % 2] for n, name in enumerate(SPEAKERS)}
SPEAKER_OF = {f"{name}-{i}": name for name in SPEAKERS for i in range(8)}
ENROLMENTS = {name: (f"{name}-0", f"{name}-1", f"{name}-2") for name in SPEAKERS}
TRIED = [item for item in SPEAKER_OF if item[-1] not in "012"]
LISTS = TrialLists(
    ENROLMENTS,
    tuple(
        Trial(name, item, SPEAKER_OF[item] == name)
        for name in SPEAKERS
        for item in TRIED
        if SEX_OF[name] == SEX_OF[SPEAKER_OF[item]]
    ),
)


class Planted:
    """An attacker that reads vectors instead of audio, with noise of its own."""

    def __init__(self, name: str, noise: float, seed: int = 0, training: str = "anonymized") -> None:
        self.name, self.noise, self.seed, self.training = name, noise, seed, training
        self.speakers, self.backend = ("public",), Cosine()
        self.seen: list[str] = []

    def embed(self, audio: np.ndarray, name: str) -> np.ndarray:
        self.seen.append(name)
        draw = np.random.default_rng([self.seed, *name.encode()])
        vector = audio + draw.normal(0, self.noise, len(audio))
        return (vector / np.linalg.norm(vector)).astype(np.float32)

    def save(self, folder: Path) -> None:
        raise NotImplementedError


def voices(size: int = 16) -> dict[str, np.ndarray]:
    draw = np.random.default_rng(5)
    return {name: draw.normal(0, 1, size) for name in SPEAKERS}


def plan(*, pooled: bool = False) -> Plan:
    return Plan(LISTS, draw_rank_protocol(ENROLMENTS, SPEAKER_OF, 3, 1, pooled=pooled))


def scenario(name: str, attackers: dict, read, enrolled=None, **changes) -> Scenario:
    values = {
        "training": "anonymized",
        "enrolment": "anonymized",
        "trial": "anonymized",
        "plan": plan(),
        **changes,
    }
    return Scenario(name, attackers, read_enrolment=enrolled or read, read_trial=read, **values)


def quiet(what: str, total: int):
    return lambda done: None


def evaluated(folder: Path, scored: Scored) -> dict:
    place = folder / scored.conditions.attacker / scored.conditions.scenario
    write_attack(place, scored, LISTS, SPEAKER_OF, sex_of=SEX_OF)
    return evaluate_attack(place, SuiteOptions(replicates=20))[1]


def resynthesized_enrolment() -> tuple:
    """T10-2 planted: trials have another voice, each speaker always the same; enrolment is as it was."""
    own, made = (
        voices(),
        {name: np.random.default_rng([7, n]).normal(0, 1, 16) for n, name in enumerate(SPEAKERS)},
    )
    enrolled = {item for items in ENROLMENTS.values() for item in items}

    def read(item: str) -> np.ndarray:
        return (own if item in enrolled else made)[SPEAKER_OF[item]]

    return {"planted": [Planted("planted", 0.5)]}, read


def codes(attack: dict) -> set[str]:
    return {warning["code"] for warning in attack["warnings"]}


def test_a_voice_that_is_merely_changed_in_trials_fires_the_warning(tmp_path: Path) -> None:
    attackers, read = resynthesized_enrolment()
    (scored,) = run_scenarios([scenario("semi_informed", attackers, read, plan=plan(pooled=True))], quiet)
    found = evaluated(tmp_path, scored)
    eer, rate = (found["metrics"][name]["value"] for name in ("eer", "identification_rate"))
    assert eer > 35, "the standard protocol sees little"
    assert rate > 40, "the pooled one sees who it is, where chance is 5"
    assert "pooled_attack_stronger" in codes(found)
    assert "enrolment and trial may be anonymized differently" in str(found["warnings"])


def test_the_warning_is_silent_where_both_sides_are_treated_alike(tmp_path: Path) -> None:
    own = voices()
    for noise in (0.5, 3.0):
        attackers = {"planted": [Planted("planted", noise)]}
        run = scenario("semi_informed", attackers, lambda item: own[SPEAKER_OF[item]], plan=plan(pooled=True))
        (scored,) = run_scenarios([run], quiet)
        assert "pooled_attack_stronger" not in codes(evaluated(tmp_path / str(noise), scored))


def test_without_pooling_the_planted_case_goes_unseen(tmp_path: Path) -> None:
    """Why references are drawn from both sides."""
    attackers, read = resynthesized_enrolment()
    (scored,) = run_scenarios([scenario("semi_informed", attackers, read)], quiet)
    assert evaluated(tmp_path, scored)["metrics"]["identification_rate"]["value"] < 30


def test_the_strongest_seed_counts_and_all_are_told(tmp_path: Path) -> None:
    own = voices()
    seeds = [Planted("planted", noise, seed) for seed, noise in enumerate((6.0, 1.0, 3.0))]
    run = scenario("semi_informed", {"planted": seeds}, lambda item: own[SPEAKER_OF[item]])
    (scored,) = run_scenarios([run], quiet)
    assert np.argmin(scored.seed_eers) == 1
    found = evaluated(tmp_path, scored)
    assert found["seed_eers"] == list(scored.seed_eers)
    assert found["metrics"]["eer"]["value"] == pytest.approx(min(scored.seed_eers), abs=1e-6)
    alone = scenario("semi_informed", {"planted": [seeds[1]]}, lambda item: own[SPEAKER_OF[item]])
    (only,) = run_scenarios([alone], quiet)
    assert np.array_equal(only.scores, scored.scores)


def test_every_scenario_hears_the_speech_it_says(tmp_path: Path) -> None:
    first, own = Planted("planted", 0.1, training="original"), Planted("planted", 0.1)
    heard: dict[str, set[str]] = {"original": set(), "anonymized": set()}
    vectors = voices()

    def reader(state: str):
        def read(item: str) -> np.ndarray:
            heard[state].add(item)
            return vectors[SPEAKER_OF[item]]

        return read

    enrolled = {item for items in ENROLMENTS.values() for item in items}
    runs = [
        scenario("ignorant", {"planted": [first]}, reader("anonymized"), reader("original"),
                 training="original", enrolment="original"),
        scenario("lazy_informed", {"planted": [first]}, reader("anonymized"), training="original"),
        scenario("semi_informed", {"planted": [own]}, reader("anonymized")),
    ]  # fmt: skip
    found = {each.conditions.scenario: each.conditions for each in run_scenarios(runs, quiet)}
    assert found["ignorant"] == Conditions("planted", "ignorant", "original", "anonymized", "original")
    assert heard["original"] == enrolled
    assert heard["anonymized"] == set(SPEAKER_OF)
    assert len(first.seen) == len(SPEAKER_OF) + len(enrolled), "each state of each utterance once"


def test_fused_attackers_are_one_more_attacker(tmp_path: Path) -> None:
    vectors = voices()

    def part(half: int):
        class Half(Planted):
            def embed(self, audio: np.ndarray, name: str) -> np.ndarray:
                return super().embed(audio[8 * half : 8 * half + 8], name)

        return Half(f"half{half}", 1.6, seed=half)

    attackers = {f"half{half}": [part(half)] for half in range(2)}
    plain = list(
        run_scenarios([scenario("semi_informed", attackers, lambda i: vectors[SPEAKER_OF[i]])], quiet)
    )
    is_target = np.array([trial.target for trial in LISTS.trials])
    fusion = fit_fusion({each.conditions.attacker: each.scores for each in plain}, is_target, 4)
    run = scenario("semi_informed", attackers, lambda i: vectors[SPEAKER_OF[i]], fusion=fusion)
    scored = {each.conditions.attacker: each for each in run_scenarios([run], quiet)}
    assert list(scored) == ["half0", "half1", "fusion"]
    found = {name: evaluated(tmp_path, each) for name, each in scored.items()}
    rates = {name: each["metrics"]["eer"]["value"] for name, each in found.items()}
    assert rates["fusion"] < min(rates["half0"], rates["half1"])
    added = independent_disclosure(list(found.values()))["semi_informed"]
    parts = [found[name]["metrics"]["rank_mean"]["value"] for name in ("half0", "half1")]
    assert added["attackers"] == ["half0", "half1"]
    assert added["bits_if_independent"] == pytest.approx(min(sum(parts), np.log2(20)))


def test_a_recipe_that_fails_on_original_speech_is_flagged_in_every_trained_row(tmp_path: Path) -> None:
    vectors = voices()
    runs = [
        scenario(name, {"planted": [Planted("planted", 8.0, training=training)]},
                 lambda i: vectors[SPEAKER_OF[i]], training=training, enrolment=state, trial=state)
        for name, training, state in (
            ("original", "original", "original"),
            ("lazy_informed", "original", "anonymized"),
            ("semi_informed", "anonymized", "anonymized"),
        )
    ]  # fmt: skip
    found = [evaluated(tmp_path, each) for each in run_scenarios(runs, quiet)]
    add_convergence_warnings(found)
    flagged = {each["scenario"] for each in found if "attacker_not_converged" in codes(each)}
    assert flagged == {"original", "semi_informed"}


def test_attackers_that_know_the_tested_are_refused() -> None:
    attacker = Planted("planted", 1.0)
    attacker.speakers = ("s01", "x")
    with pytest.raises(
        InputError, match=r"speaker s01: the attacker was trained on a speaker it is tested on"
    ):
        check_attackers({"planted": [attacker]}, "anonymized", SPEAKERS, "here")
    with pytest.raises(InputError, match="here: was trained on anonymized speech, must be original"):
        check_attackers({"planted": [Planted("planted", 1.0)]}, "original", SPEAKERS, "here")


def test_a_result_names_the_imported_network_of_its_attacker(tmp_path: Path) -> None:
    attackers, read = resynthesized_enrolment()
    (scored,) = run_scenarios([scenario("semi_informed", attackers, read, plan=plan(pooled=True))], quiet)
    assert "pretrained" not in evaluated(tmp_path, scored)
    facts = {"architecture": "campplus", "digest": "ab" * 32, "licence": "MIT", "source": "a folder"}
    named = replace(scored, conditions=replace(scored.conditions, pretrained=facts))
    assert evaluated(tmp_path, named)["pretrained"] == facts
    folder = tmp_path / named.conditions.attacker / named.conditions.scenario
    assert read_attack(folder).conditions == named.conditions
