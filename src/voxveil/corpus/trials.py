"""Enrolment and trial lists as in the VoicePrivacy challenge: drawn, written, read and checked.

Each speaker is enrolled with some utterances; every other utterance is a target trial against
its own speaker and a nontarget trial against each other speaker of the same sex. No utterance
stands on both sides.

On disk: ``enrol.scp`` (``ENROLMENT UTT1 UTT2 ...``) and ``trials.txt``
(``ENROLMENT UTTERANCE target|nontarget``).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from voxveil.corpus.split import Utterance
from voxveil.runtime.atomic import write_text
from voxveil.runtime.errors import IncompleteInputError, InputError
from voxveil.runtime.seeding import stream

__all__ = [
    "Trial",
    "TrialLists",
    "check_lists",
    "draw_trials",
    "enough_utterances",
    "read_lines",
    "read_trials",
    "write_trials",
]

ENROL = "enrol.scp"
TRIALS = "trials.txt"


@dataclass(frozen=True)
class Trial:
    """A verification trial: an enrolment, a test utterance, and whether their speakers match."""

    enrolment: str
    utterance: str
    target: bool


@dataclass(frozen=True)
class TrialLists:
    """Enrolments (id to utterance ids) and the trials against them."""

    enrolments: Mapping[str, tuple[str, ...]]
    trials: tuple[Trial, ...]

    @property
    def trial_utterances(self) -> tuple[str, ...]:
        """Utterances on the trial side, sorted."""
        return tuple(sorted({trial.utterance for trial in self.trials}))


def enough_utterances(enrolment_utterances: int) -> int:
    """Return how many utterances a speaker needs to be enrolled and tried."""
    return enrolment_utterances + 1


def draw_trials(utterances: Iterable[Utterance], enrolment_utterances: int, seed: int) -> TrialLists:
    """Draw enrolments and trials.

    Args:
        utterances: All utterances of the private speakers.
        enrolment_utterances: Utterances a speaker is enrolled with.
        seed: The run's seed.

    Returns:
        One enrolment per speaker, named by the speaker id.

    Raises:
        InputError: A speaker with too few utterances, or a sex with one speaker only.
    """
    by_speaker: dict[str, list[str]] = {}
    sexes: dict[str, str] = {}
    for utterance in utterances:
        by_speaker.setdefault(utterance.speaker, []).append(utterance.id)
        sexes[utterance.speaker] = utterance.sex
    needed = enough_utterances(enrolment_utterances)
    for speaker, items in sorted(by_speaker.items()):
        if len(items) < needed:
            raise InputError(f"speaker {speaker}: {len(items)} utterances, enrolment and trial need {needed}")
    for sex in sorted(set(sexes.values())):
        alone = [speaker for speaker in sexes if sexes[speaker] == sex]
        if len(alone) == 1:
            raise InputError(f"speaker {alone[0]}: the only one of sex {sex}; no same-sex nontarget trials")
    enrolments: dict[str, tuple[str, ...]] = {}
    trials: list[Trial] = []
    for speaker in sorted(by_speaker):
        items = sorted(by_speaker[speaker])
        order = stream(seed, "enrolment", speaker).permutation(len(items))
        enrolments[speaker] = tuple(sorted(items[index] for index in order[:enrolment_utterances]))
    for enrolment in sorted(enrolments):
        for speaker in sorted(by_speaker):
            if sexes[speaker] != sexes[enrolment]:
                continue
            held = set(enrolments[speaker])
            trials += [
                Trial(enrolment, item, speaker == enrolment)
                for item in sorted(by_speaker[speaker])
                if item not in held
            ]
    return TrialLists(enrolments, tuple(trials))


def write_trials(folder: Path, lists: TrialLists) -> None:
    """Write ``enrol.scp`` and ``trials.txt``."""
    enrol = [f"{name} {' '.join(items)}\n" for name, items in sorted(lists.enrolments.items())]
    trials = [f"{t.enrolment} {t.utterance} {'target' if t.target else 'nontarget'}\n" for t in lists.trials]
    write_text(Path(folder) / ENROL, "".join(enrol))
    write_text(Path(folder) / TRIALS, "".join(trials))


def read_trials(folder: Path, speakers: Mapping[str, str]) -> TrialLists:
    """Read and check enrolments and trials.

    Args:
        folder: Holds ``enrol.scp`` and ``trials.txt``.
        speakers: Speaker of every utterance there is.

    Raises:
        InputError: Naming file, line and utterance: an unknown utterance or enrolment, a wrong
            label, a trial listed twice, an utterance that is both enrolled and tried.
    """
    lists = check_lists(read_lines(Path(folder) / ENROL), read_lines(Path(folder) / TRIALS), speakers)
    if not lists.trials:
        raise IncompleteInputError(f"{Path(folder) / TRIALS}: has no trials, at least one is needed")
    return lists


def check_lists(
    enrol: Iterable[tuple[str, Sequence[str]]],
    listed: Iterable[tuple[str, Sequence[str]]],
    speakers: Mapping[str, str],
) -> TrialLists:
    """Check enrolments and trials of any origin and return them.

    Args:
        enrol: Location (``FILE:LINE``) and fields of each line, ``ENROLMENT UTTERANCE...``.
        listed: The same of the trials, ``ENROLMENT UTTERANCE target|nontarget``.
        speakers: Speaker of every utterance there is.

    Raises:
        InputError: As :func:`read_trials`.
    """
    enrolments: dict[str, tuple[str, ...]] = {}
    owner: dict[str, str] = {}
    for where, fields in enrol:
        if len(fields) < 2:
            raise InputError(f"{where}: must be 'ENROLMENT UTTERANCE...', got {' '.join(fields)!r}")
        name, *items = fields
        if name in enrolments:
            raise InputError(f"{where}: enrolment {name} is there twice")
        for item in items:
            _known(item, speakers, where)
            if item in owner:
                raise InputError(f"{where}: utterance {item} is enrolled twice ({owner[item]}, {name})")
            owner[item] = name
        if len({speakers[item] for item in items}) > 1:
            raise InputError(f"{where}: enrolment {name} mixes utterances of several speakers")
        enrolments[name] = tuple(items)
    trials: dict[tuple[str, str], Trial] = {}
    for where, fields in listed:
        trial = _trial(fields, where, enrolments, speakers)
        if trial.utterance in owner:
            raise InputError(
                f"{where}: utterance {trial.utterance} is also enrolled (in {owner[trial.utterance]});"
                " enrolment and trials must not share utterances"
            )
        if (trial.enrolment, trial.utterance) in trials:
            raise InputError(f"{where}: trial {trial.enrolment} {trial.utterance} is there twice")
        trials[trial.enrolment, trial.utterance] = trial
    return TrialLists(enrolments, tuple(trials.values()))


def _trial(
    fields: Sequence[str], where: str, enrolments: Mapping[str, Sequence[str]], speakers: Mapping[str, str]
) -> Trial:
    if len(fields) != 3 or fields[2] not in ("target", "nontarget"):
        raise InputError(f"{where}: must be 'ENROLMENT UTTERANCE target|nontarget', got {' '.join(fields)!r}")
    enrolment, utterance, label = fields
    if enrolment not in enrolments:
        raise InputError(f"{where}: enrolment {enrolment} is not in {ENROL}")
    _known(utterance, speakers, where)
    same = speakers[utterance] == speakers[enrolments[enrolment][0]]
    if same != (label == "target"):
        raise InputError(
            f"{where}: trial {enrolment} {utterance} is labelled {label}, its speaker says otherwise"
        )
    return Trial(enrolment, utterance, same)


def _known(item: str, speakers: Mapping[str, str], where: str) -> None:
    if item not in speakers:
        raise InputError(f"{where}: utterance {item} is not in the split")


def read_lines(path: Path) -> list[tuple[str, list[str]]]:
    """Return ``FILE:LINE`` and the fields of every line of a list that is not blank.

    Raises:
        IncompleteInputError: The file is missing.
    """
    if not path.is_file():
        raise IncompleteInputError(
            f"{path}: no such file; it must be a list of enrolments, trials or speakers"
        )
    lines = path.read_text(encoding="utf-8").splitlines()
    return [(f"{path}:{number}", line.split()) for number, line in enumerate(lines, 1) if line.strip()]
