"""Attack scenarios (ignorant to semi-informed): scores, strongest seed, fusion, and their files.

==============  ====================  ==========  ==========
scenario        attacker trained on   enrolment   trials
==============  ====================  ==========  ==========
original        original speech       original    original      OO
ignorant        original speech       original    anonymized    OA
lazy_informed   original speech       anonymized  anonymized    AA
semi_informed   anonymized speech     anonymized  anonymized    AA
==============  ====================  ==========  ==========
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from voxveil.attack.attackers.interface import Attacker, Conditions, embed_utterances, score_trials
from voxveil.attack.fusion import FUSION, Fusion
from voxveil.attack.rank import RankProtocol, RankScores, score_ranks
from voxveil.corpus.trials import TrialLists, write_trials
from voxveil.metrics.data import CountTable
from voxveil.metrics.eer import eer
from voxveil.runtime.atomic import read_json, write_json, write_text
from voxveil.runtime.errors import InputError

__all__ = [
    "STATES",
    "Attackers",
    "Plan",
    "Scenario",
    "Scored",
    "check_attackers",
    "fused",
    "read_attack",
    "run_scenarios",
    "write_attack",
]

#: State of training, enrolment and trial speech in each scenario.
STATES = {
    "original": ("original", "original", "original"),
    "ignorant": ("original", "original", "anonymized"),
    "lazy_informed": ("original", "anonymized", "anonymized"),
    "semi_informed": ("anonymized", "anonymized", "anonymized"),
}

Read = Callable[[str], NDArray[np.float32]]
#: Attackers by kind, each with its seeds.
Attackers = Mapping[str, Sequence[Attacker]]


@dataclass(frozen=True)
class Plan:
    """Trials and rank protocol to score.

    Attributes:
        lists: Enrolments and trials.
        ranks: The rank protocol.
    """

    lists: TrialLists
    ranks: RankProtocol

    @property
    def enrolled(self) -> list[str]:
        """Enrolment utterances of the trials and of the ranks."""
        of_trials = [item for items in self.lists.enrolments.values() for item in items]
        of_ranks = [item for items in self.ranks.references.values() for item in items]
        return list(dict.fromkeys([*of_trials, *of_ranks]))

    @property
    def tested(self) -> list[str]:
        """Utterances that are tried or ranked."""
        return list(dict.fromkeys([*self.lists.trial_utterances, *(item for item, _ in self.ranks.inputs)]))


@dataclass(frozen=True)
class Scenario:
    """One scenario: attackers with the state of enrolment and trial speech.

    Attributes:
        name: As in tables.
        attackers: Trained on speech of ``training``.
        training: ``original`` or ``anonymized``.
        enrolment: State of the enrolled speech.
        trial: State of the tested speech.
        read_enrolment: Returns the audio of an enrolled utterance.
        read_trial: Returns the audio of a tested one.
        plan: What is compared with what.
        fusion: Weights of the attackers, or None.
    """

    name: str
    attackers: Attackers
    training: str
    enrolment: str
    trial: str
    read_enrolment: Read
    read_trial: Read
    plan: Plan
    fusion: Fusion | None = None


@dataclass(frozen=True)
class Scored:
    """Scores of one attack.

    Attributes:
        conditions: What a row made from it must say.
        scores: (trials,) scores.
        ranks: The rank protocol scored.
        seed_eers: EER in % of the attacker with each seed; the lowest one's scores are those above.
    """

    conditions: Conditions
    scores: NDArray[np.float64]
    ranks: RankScores
    seed_eers: tuple[float, ...] = ()


def run_scenarios(
    scenarios: Sequence[Scenario], progress: Callable[[str, int], Callable[[int], None]]
) -> Iterator[Scored]:
    """Attack in every scenario, kind by kind; utterances are embedded once for each attacker and state.

    Args:
        scenarios: What adversaries have.
        progress: Starts a progress line, given its label and the number of utterances; the function that it
            returns receives how many are done.
    """
    first: dict[str, dict[str, Scored]] = {scenario.name: {} for scenario in scenarios}
    kinds = list(dict.fromkeys(kind for scenario in scenarios for kind in scenario.attackers))
    for kind in kinds:
        known: dict[tuple[int, str], dict[str, NDArray[np.float32]]] = {}
        for scenario in scenarios:
            if kind not in scenario.attackers:
                continue
            tries = []
            for attacker in scenario.attackers[kind]:
                vectors = _vectors(attacker, scenario, known, progress)
                tries.append(_scored(attacker, scenario, vectors))
            first[scenario.name][kind] = tries[0]
            yield strongest(tries, scenario.plan.lists)
    for scenario in scenarios:
        if scenario.fusion is not None:
            yield fused(scenario.fusion, first[scenario.name])


def strongest(tries: Sequence[Scored], lists: TrialLists) -> Scored:
    """Return the attack with the lowest EER: of several seeds the strongest counts."""
    is_target = np.array([trial.target for trial in lists.trials])
    rates = []
    for attempt in tries:
        table = CountTable.from_scores(attempt.scores[is_target], attempt.scores[~is_target])
        rates.append(100.0 * eer(table))
    best = tries[int(np.argmin(rates))]
    return Scored(best.conditions, best.scores, best.ranks, tuple(rates))


def check_attackers(attackers: Attackers, training: str, tested: Sequence[str], where: str) -> None:
    """Check that attackers have the right training state and were not trained on tested speakers.

    Args:
        attackers: By kind.
        training: State of speech they must have been trained on.
        tested: Speakers they attack.
        where: What to name in an error.
    """
    for attacker in (trained for seeds in attackers.values() for trained in seeds):
        both = sorted(set(attacker.speakers) & set(tested))
        if both:
            raise InputError(
                f"speaker {both[0]}: the attacker was trained on a speaker it is tested on"
                f" ({len(both)} in all)"
            )
        if attacker.training != training:
            raise InputError(f"{where}: was trained on {attacker.training} speech, must be {training}")


def _vectors(
    attacker: Attacker,
    scenario: Scenario,
    known: dict[tuple[int, str], dict[str, NDArray[np.float32]]],
    progress: Callable[[str, int], Callable[[int], None]],
) -> dict[str, NDArray[np.float32]]:
    """Return the vector of every utterance, enrolled ones from speech of the enrolment's state."""
    enrolled = scenario.plan.enrolled
    inputs = set(scenario.plan.tested)
    only_enrolled = [item for item in enrolled if scenario.enrolment == scenario.trial or item not in inputs]
    result: dict[str, NDArray[np.float32]] = {}
    for state, read, items in (
        (scenario.trial, scenario.read_trial, scenario.plan.tested),
        (scenario.enrolment, scenario.read_enrolment, only_enrolled),
    ):
        cache = known.setdefault((id(attacker), state), {})
        missing = [item for item in items if item not in cache]
        if missing:
            tell = progress(f"{attacker.name}, {scenario.name}, {state}", len(missing))
            cache.update(embed_utterances(attacker, missing, read, tell))
        result.update({item: cache[item] for item in items})
    return result


def _scored(attacker: Attacker, scenario: Scenario, vectors: dict[str, NDArray[np.float32]]) -> Scored:
    lists, backend = scenario.plan.lists, attacker.backend
    pairs = [(trial.enrolment, trial.utterance) for trial in lists.trials]
    return Scored(
        Conditions(
            attacker.name,
            scenario.name,
            scenario.enrolment,
            scenario.trial,
            attacker.training,
            getattr(attacker, "pretrained", {}),
        ),
        score_trials(vectors, lists.enrolments, pairs, backend),
        score_ranks(vectors, scenario.plan.ranks, backend),
    )


def fused(fusion: Fusion, parts: Mapping[str, Scored]) -> Scored:
    """Return the fusion of attacks in one scenario.

    Args:
        fusion: Weights of the attackers.
        parts: What each kind of attacker scored.

    Raises:
        InputError: An attacker that has a weight has no scores.
    """
    missing = [kind for kind in fusion.kinds if kind not in parts]
    if missing:
        raise InputError(
            f"the fusion weighs attacker {missing[0]}, which has no scores; scored: {', '.join(parts)}"
        )
    first = parts[fusion.kinds[0]]
    return Scored(
        replace(first.conditions, attacker=FUSION, pretrained={}),
        fusion.apply({kind: parts[kind].scores for kind in fusion.kinds}),
        replace(first.ranks, scores=fusion.apply({kind: parts[kind].ranks.scores for kind in fusion.kinds})),
    )


def write_attack(
    target: Path,
    scored: Scored,
    lists: TrialLists,
    speaker_of: Mapping[str, str],
    *,
    short_clips: int | None = None,
    sex_of: Mapping[str, str] | None = None,
) -> None:
    """Write the files of one attack; equal results give equal bytes.

    The files are ``scores.txt`` (``ENROLMENT UTTERANCE SCORE``, in the order of the trials),
    ``trials.txt``, ``enrol.scp`` and ``utt2spk`` (what intervals over speakers need), ``spk2gender``
    (what results by sex need), ``rank.npz`` and ``conditions.json``.

    Args:
        target: The folder to write them in, ``ATTACKER/SCENARIO``.
        scored: Scores of the trials, of the ranks, and the conditions.
        lists: Enrolments and trials.
        speaker_of: Speaker of every utterance.
        short_clips: Utterances that were repeated to be long enough for the attacker, where counted.
        sex_of: ``F`` or ``M`` of every speaker, where known.
    """
    ranks = scored.ranks
    enrolled = {item for items in lists.enrolments.values() for item in items}
    used = sorted(enrolled | set(lists.trial_utterances) | set(ranks.inputs.tolist()))
    rows = zip(lists.trials, scored.scores, strict=True)
    _write_lines(target / "scores.txt", (f"{t.enrolment} {t.utterance} {score:.9g}" for t, score in rows))
    write_trials(target, lists)
    _write_lines(target / "utt2spk", (f"{item} {speaker_of[item]}" for item in used))
    speakers = sorted({speaker_of[item] for item in used})
    if sex_of is not None:
        _write_lines(target / "spk2gender", (f"{name} {sex_of[name].lower()}" for name in speakers))
    ranks.save(target / "rank.npz")
    counts = {
        "enrolments": len(lists.enrolments),
        "rank_inputs": len(ranks.inputs),
        "rank_references": len(ranks.reference_labels),
        "speakers": len(speakers),
        "trials_nontarget": sum(not trial.target for trial in lists.trials),
        "trials_target": sum(trial.target for trial in lists.trials),
    }
    if short_clips is not None:
        counts["short_clips_repeated"] = short_clips
    content = {"format": 1, **asdict(scored.conditions), "counts": counts}
    if not scored.conditions.pretrained:
        del content["pretrained"]
    if len(scored.seed_eers) > 1:
        content["seed_eers"] = list(scored.seed_eers)
    write_json(target / "conditions.json", content)


def _write_lines(path: Path, lines: Iterable[str]) -> None:
    write_text(path, "".join(f"{line}\n" for line in lines))


def read_attack(folder: Path) -> Scored:
    """Read the scores that :func:`write_attack` wrote, which have nine digits."""
    content = read_json(folder / "conditions.json")
    lines = (folder / "scores.txt").read_text(encoding="utf-8").splitlines()
    return Scored(
        Conditions(**{name: content[name] for name in Conditions.__dataclass_fields__ if name in content}),
        np.array([float(line.split()[2]) for line in lines]),
        RankScores.load(folder / "rank.npz"),
        tuple(content.get("seed_eers", ())),
    )
