"""Attacks on a test set, one kind of attacker at a time; finished steps are reused.

An output folder holds ``attackers/`` (trained once for each training folder), ``scores/SET/KIND/`` (as the
score stage leaves them) and what the evaluation adds. Each step records what it was made from; another
parameter, another version of the speech or of the library makes it anew.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from voxveil import __version__
from voxveil.attack.attackers.interface import Attacker, TrainingSetup
from voxveil.attack.attackers.registry import attacker_folder, load_attacker, seeds_of, train_attacker
from voxveil.attack.external.speech import TestSet, speech_digest
from voxveil.attack.fusion import FUSION, Fusion, fuse_attackers, hold_out
from voxveil.attack.rank import draw_rank_protocol
from voxveil.attack.scenarios import (
    STATES,
    Plan,
    Scenario,
    Scored,
    check_attackers,
    fused,
    read_attack,
    run_scenarios,
    write_attack,
)
from voxveil.attack.transcripts import score_transcripts, transcripts_of
from voxveil.config.networks import TrainAttackerParams
from voxveil.corpus.split import Speech
from voxveil.metrics.data import TRANSCRIPTS, WORDS_ALONE
from voxveil.runtime.atomic import read_json, whole_directory
from voxveil.runtime.done import DONE, finish
from voxveil.runtime.errors import InputError
from voxveil.runtime.stamps import content_digest, has_stamp, write_stamp
from voxveil.runtime.terminal import Progress

__all__ = ["Attack", "attack_folders", "scenario_names"]

_STATES = ("original", "anonymized")


def scenario_names(test: TestSet) -> tuple[str, ...]:
    """Return the scenarios that the speech of a test set allows, from OO to AA."""
    if test.original_train is None:
        return ("semi_informed",)
    if test.original is None:
        return ("lazy_informed", "semi_informed")
    return ("original", "ignorant", "lazy_informed", "semi_informed")


@dataclass(frozen=True)
class Attack:
    """An attack on one test set.

    Attributes:
        test: What is attacked.
        params: Sizes, steps and augmentation of the attackers.
        out: The output folder.
        seed: The run's seed.
        rank_inputs: Inputs of each speaker in the rank protocol.
    """

    test: TestSet
    params: TrainAttackerParams
    out: Path
    seed: int
    rank_inputs: int

    @property
    def scores(self) -> Path:
        """The folder of this set's ``ATTACKER/SCENARIO``."""
        return self.out / "scores" / self.test.name

    def run(self, kind: str, seeds: Mapping[str, int]) -> None:
        """Train and attack with one kind of attacker, unless that is done.

        Args:
            kind: One of :data:`voxveil.attack.attackers.registry.KINDS`.
            seeds: Seeds to train on original and on anonymized speech; the strongest counts.
        """
        target = self.scores / kind
        stamp = self._made_from(kind, seeds)
        if has_stamp(target, stamp):
            return
        trained = {
            state: [self._attacker(kind, state, number) for number in seeds_of(kind, seeds[state])]
            for state in self._states()
        }
        scenarios = [self._scenario(name, kind, trained) for name in scenario_names(self.test)]
        for scenario in scenarios:
            check_attackers(scenario.attackers, scenario.training, self.test.speech.speakers, kind)
        with whole_directory(target) as folder:
            for scored in run_scenarios(scenarios, self._progress):
                self._write(folder, scored)
            write_stamp(folder, stamp)
            finish(folder, "attack", kind)

    def fuse(self, kinds: Sequence[str], seeds: Mapping[str, Mapping[str, int]]) -> None:
        """Fuse finished attacks, unless that is done; the weights come from public speakers held out."""
        target = self.scores / FUSION
        stamp = {"kinds": [[kind, self._made_from(kind, seeds[kind])] for kind in kinds]}
        if has_stamp(target, stamp):
            return
        weights: dict[str, Fusion] = {}
        with whole_directory(target) as folder:
            for name in scenario_names(self.test):
                state = STATES[name][0]
                if state not in weights:
                    weights[state] = self._fusion(kinds, state)
                parts = {kind: read_attack(self.scores / kind / name) for kind in kinds}
                self._write(folder, fused(weights[state], parts))
            for state, fusion in weights.items():
                (folder / f"weights-{state}").mkdir()
                fusion.save(folder / f"weights-{state}")
            write_stamp(folder, stamp)
            finish(folder, "attack", FUSION)

    def run_transcripts(self) -> Path | None:
        """Attack the transcripts of the trials, unless that is done.

        Returns:
            The folder of the attack; None where utterances or public speech have no transcripts.
        """
        texts = transcripts_of(self.test.original) | transcripts_of(self.test.speech)
        public = transcripts_of(self.test.original_train) or transcripts_of(self.test.train)
        plan = self._plan(pooled=True)
        target = self.scores / WORDS_ALONE
        stamp = {
            "texts": content_digest([texts, public]),
            "lists": self._lists_digest(),
            "rank_inputs": self.rank_inputs,
            "seed": self.seed,
            "version": __version__,
        }
        if not has_stamp(target, stamp):
            scored = score_transcripts(texts, public, plan)
            if scored is None:
                return None
            with whole_directory(target) as folder:
                self._write(folder, scored)
                write_stamp(folder, stamp)
                finish(folder, "attack", WORDS_ALONE)
        return target / TRANSCRIPTS

    def _lists_digest(self) -> str:
        lists = self.test.lists
        return content_digest([dict(lists.enrolments), [asdict(trial) for trial in lists.trials]])

    def _states(self) -> tuple[str, ...]:
        return ("anonymized",) if self.test.original_train is None else _STATES

    def _speech(self, state: str) -> Speech:
        found = self.test.train if state == "anonymized" else self.test.original_train
        if found is None:
            raise InputError(f"{self.test.name}: has no {state} training speech; --original-train names it")
        return found

    def _parts(self, state: str) -> tuple[Speech, Speech | None]:
        """Return training speech and held-out speech, with the same speakers in both states."""
        speech = self._speech(state)
        if not self.params.fusion_speakers:
            return speech, None
        return hold_out(speech, self.params.fusion_speakers, self.seed)

    def _attacker(self, kind: str, state: str, number: int) -> Attacker:
        stamp = self._trained_from(kind, state, number)
        mark = content_digest(stamp)
        folder = self.out / "attackers" / f"{attacker_folder(kind, number)}-{state}-{mark[:8]}"
        if not has_stamp(folder, stamp):
            speech, _ = self._parts(state)
            print(f"{kind}: training on {state} speech of {len(speech.speakers)} speakers, seed {number}")
            checkpoints = self.out / "attackers" / f".checkpoints-{mark[:16]}"
            trained = train_attacker(
                kind, speech, TrainingSetup(self.params, state, self.seed, checkpoints), number
            )
            with whole_directory(folder) as partial:
                trained.attacker.save(partial)
                write_stamp(partial, stamp)
                finish(partial, "attack", kind)
        return load_attacker(folder)

    def _trained_from(self, kind: str, state: str, number: int) -> dict[str, Any]:
        params = {
            name: value for name, value in asdict(self.params).items() if name not in ("kinds", "seeds")
        }
        return {
            "kind": kind,
            "state": state,
            "number": number,
            "params": params,
            "seed": self.seed,
            "speech": speech_digest(self._speech(state)),
            "version": __version__,
        }

    def _made_from(self, kind: str, seeds: Mapping[str, int]) -> dict[str, Any]:
        return {
            "attackers": [
                self._trained_from(kind, state, number)
                for state in self._states()
                for number in seeds_of(kind, seeds[state])
            ],
            "lists": self._lists_digest(),
            "speech": speech_digest(self.test.speech),
            "original": "" if self.test.original is None else speech_digest(self.test.original),
            "rank_inputs": self.rank_inputs,
        }

    def _plan(self, *, pooled: bool) -> Plan:
        used = {item for items in self.test.lists.enrolments.values() for item in items}
        used |= set(self.test.lists.trial_utterances)
        speakers = {item.id: item.speaker for item in self.test.speech if item.id in used}
        lists = self.test.lists
        ranks = draw_rank_protocol(lists.enrolments, speakers, self.rank_inputs, self.seed, pooled=pooled)
        return Plan(lists, ranks)

    def _scenario(self, name: str, kind: str, trained: dict[str, list[Attacker]]) -> Scenario:
        training, enrolment, trial = STATES[name]
        read = {"anonymized": self.test.speech.audio}
        if self.test.original is not None:
            read["original"] = self.test.original.audio
        return Scenario(
            name,
            {kind: trained[training]},
            training,
            enrolment,
            trial,
            read[enrolment],
            read[trial],
            # Where both sides are said to be in one state, references are drawn from both.
            self._plan(pooled=enrolment == trial),
        )

    def _write(self, folder: Path, scored: Scored) -> None:
        speech = self.test.speech
        write_attack(
            folder / scored.conditions.scenario,
            scored,
            self.test.lists,
            {item.id: item.speaker for item in speech},
            sex_of={item.speaker: item.sex for item in speech},
        )

    def _fusion(self, kinds: Sequence[str], state: str) -> Fusion:
        _, held = self._parts(state)
        if held is None:
            raise InputError("train_attacker.fusion_speakers: got 0, must be at least 4 for a fusion")
        scenario = "semi_informed" if state == "anonymized" else "lazy_informed"
        chosen = []
        for kind in kinds:
            rates = read_json(self.scores / kind / scenario / "conditions.json").get("seed_eers", [0.0])
            chosen.append(self._attacker(kind, state, int(np.argmin(rates)) + 1))
        return fuse_attackers(chosen, held)

    def _progress(self, what: str, total: int) -> Callable[[int], None]:
        return Progress(f"{self.test.name}: {what}", total, "utterance").update


def attack_folders(scores: Path) -> Iterator[Path]:
    """Yield every finished ``ATTACKER/SCENARIO`` of a set."""
    for path in sorted(scores.glob("*/*/scores.txt")):
        if (path.parent.parent / DONE).is_file():
            yield path.parent
