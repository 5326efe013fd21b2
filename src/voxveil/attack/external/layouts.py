"""Discovery of enrolment, trials and training speech in an external folder.

Four layouts, told apart by what is there:

* plain: ``train/`` (or ``attacker/``), ``test/`` (or ``released/``) and ``trials/`` with ``enrol.scp`` and
  ``trials.txt``; the originals, if given, in ``original/train/`` and ``original/test/``;
* Kaldi and VoicePrivacy 2022 to 2026: data folders ``SET_enrolls``, ``SET_trials_f``, ``SET_trials_m`` or
  ``SET_trials_mixed`` and ``train...``, each with ``wav.scp``, ``utt2spk`` and ``spk2gender``; anonymized
  ones end in a suffix, e.g. ``_mcadams``, and lie beside the originals. The lists are the files ``enrolls``
  and ``trials`` in them, or in the originals;
* language-coded: such folders below ``DIR/de/``, or named ``de_dev_enrolls`` with ``train_german``;
* a chain: ``outputs/`` as its stages left it, every system a set.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path

from voxveil.attack.external.speech import External, TestSet, open_speech
from voxveil.attack.fusion import Joined
from voxveil.corpus.split import Speech, Split
from voxveil.corpus.trials import TrialLists, check_lists, read_lines, read_trials
from voxveil.runtime.done import DONE, require_done
from voxveil.runtime.errors import InputError

__all__ = ["LANGUAGES", "find_external"]

_NAME = re.compile(
    r"(?:(?P<set>.+?)_)?(?P<role>enroll?s?|trials)(?:_(?P<part>f|m|mixed)(?:_(?:common|all))?)?(?P<suffix>_.+)?"
)
_PLAIN = (("train", "attacker"), ("test", "released"))
#: How a language code may be called in the name of a training folder.
LANGUAGES = {
    "cn": ("chinese", "mandarin", "zh"),
    "de": ("german",),
    "en": ("english", "clean"),
    "es": ("spanish",),
    "fr": ("french",),
    "it": ("italian",),
    "ja": ("japanese",),
    "nl": ("dutch",),
    "pl": ("polish",),
    "pt": ("portuguese",),
    "zh": ("chinese", "mandarin", "cn"),
}


@dataclass(frozen=True)
class _Folder:
    """A data folder with the fields of its name."""

    path: Path
    set: str
    role: str
    part: str
    suffix: str


def find_external(
    folder: Path,
    *,
    suffix: str = "",
    lists: Path | None = None,
    train: Path | None = None,
    original_test: Path | None = None,
    original_train: Path | None = None,
    systems: Sequence[str] = (),
) -> External:
    """Find the test sets of a folder.

    Args:
        folder: Holds the speech.
        suffix: Ending of the anonymized data folders, where there are several systems.
        lists: Folder with ``enrol.scp`` and ``trials.txt``, where it is not ``trials/``.
        train: Anonymized training speech, where it lies elsewhere.
        original_test: Original enrolment and trial speech, where it lies elsewhere.
        original_train: Original training speech, where it lies elsewhere.
        systems: Of a chain's outputs, which to attack; all but the original unless given.

    Raises:
        InputError: In one line, what is missing or does not fit.
    """
    folder = Path(folder)
    if not folder.is_dir():
        raise InputError(f"{folder}: no such folder")
    if _is_chain(folder):
        if suffix or lists or train or original_test or original_train:
            raise InputError(f"{folder}: outputs of a chain; they hold lists, training speech and originals")
        return _open_chain_outputs(folder, systems)
    if systems:
        raise InputError(f"{folder}: --systems chooses from the outputs of a chain, and these are none")
    test = _first(folder, *_PLAIN[1])
    if test is not None:
        return _plain(folder, test, lists, train, original_test, original_train)
    found = _data_folders(folder)
    if found:
        return _challenge(folder, found, suffix, train, original_train)
    raise InputError(
        f"{folder}: nothing to attack; it holds neither test/ and trials/ nor data folders SET_enrolls and"
        " SET_trials... nor a chain's anonymize/ and prepare/ ('voxveil attack --help' shows the layouts)"
    )


def _first(folder: Path, *names: str) -> Path | None:
    return next((folder / name for name in names if (folder / name).is_dir()), None)


def _plain(
    folder: Path,
    test: Path,
    lists: Path | None,
    train: Path | None,
    original_test: Path | None,
    original_train: Path | None,
) -> External:
    train = train or _first(folder, *_PLAIN[0])
    if train is None:
        raise InputError(f"{folder}: no train/ (anonymized speech of other speakers, to train the attackers)")
    speech = open_speech(test)
    where = lists or folder / "trials"
    original_test = original_test or _first(folder, "original/test")
    original_train = original_train or _first(folder, "original/train")
    test_set = TestSet(
        folder.resolve().name,
        read_trials(where, {item.id: item.speaker for item in speech}),
        speech,
        _opened(original_test),
        open_speech(train),
        _opened(original_train),
    )
    return External("plain", (test_set,))


def _opened(folder: Path | None, roots: Sequence[Path] = ()) -> Speech | None:
    """Open a folder of speech, None where there is none."""
    return None if folder is None else open_speech(folder, roots)


def _data_folders(folder: Path) -> list[_Folder]:
    """Return the data folders of enrolment and trials: in the folder, in data/, in language folders."""
    found = []
    for base in (folder, folder / "data"):
        languages = [base / code for code in sorted(LANGUAGES) if (base / code).is_dir()]
        for parent in (base, *languages):
            for path in sorted(parent.iterdir()) if parent.is_dir() else ():
                match = _NAME.fullmatch(path.name)
                if match and path.is_dir():
                    language = f"{parent.name}_" if parent in languages else ""
                    name = f"{language}{match['set'] or ''}".strip("_") or "test"
                    role = "trials" if match["role"] == "trials" else "enrol"
                    found.append(_Folder(path, name, role, match["part"] or "", match["suffix"] or ""))
    return found


def _challenge(
    folder: Path, found: Sequence[_Folder], suffix: str, train: Path | None, original_train: Path | None
) -> External:
    suffix = suffix or _only_suffix(folder, found)
    names = list(dict.fromkeys(entry.set for entry in found if entry.suffix == suffix))
    suffixes = {entry.suffix for entry in found} - {""}
    if not names:
        raise InputError(
            f"{folder}: no data folder ends in {suffix!r}; suffixes: {', '.join(sorted(suffixes)) or 'none'}"
        )
    sets, notes = [], []
    for name in names:
        of_set = [entry for entry in found if entry.set == name]
        chosen = [entry for entry in of_set if entry.suffix == suffix]
        plain = [entry for entry in of_set if entry.suffix == ""] if suffix else []
        test_set, set_notes = _test_set(folder, name, suffix, chosen, plain, train, original_train, suffixes)
        sets.append(test_set)
        notes += set_notes
    return External(f"data folders, suffix {suffix or 'none'}", tuple(sets), tuple(notes))


def _only_suffix(folder: Path, found: Sequence[_Folder]) -> str:
    suffixes = sorted({entry.suffix for entry in found} - {""})
    if len(suffixes) > 1:
        raise InputError(f"{folder}: several systems ({', '.join(suffixes)}); --suffix says which")
    return suffixes[0] if suffixes else ""


def _test_set(
    folder: Path,
    name: str,
    suffix: str,
    chosen: Sequence[_Folder],
    plain: Sequence[_Folder],
    train: Path | None,
    original_train: Path | None,
    suffixes: Collection[str],
) -> tuple[TestSet, list[str]]:
    notes = []
    enrol = [entry for entry in chosen if entry.role == "enrol"]
    trials = [entry for entry in chosen if entry.role == "trials"]
    if not enrol or not trials:
        missing = "enrolls" if not enrol else "trials"
        raise InputError(f"{folder}: set {name} has no folder {name}_{missing}{suffix}")
    mixed = [entry for entry in trials if entry.part == "mixed"]
    if mixed and len(mixed) < len(trials):
        trials = mixed
        notes.append(f"{name}: the mixed-sex trials hold those by sex, so they alone are used")
    roots = [folder, folder.parent, Path()]
    speech = Joined([open_speech(entry.path, roots) for entry in (*enrol, *trials)])
    lists = _lists(enrol, trials, plain, speech)
    parts = {entry.part for entry in trials}
    originals = [entry for entry in plain if entry.role == "enrol" or entry.part in parts]
    original = Joined([open_speech(entry.path, roots) for entry in originals]) if originals else None
    if original is not None:
        used = [item for items in lists.enrolments.values() for item in items]
        lost = [item for item in (*used, *lists.trial_utterances) if item not in original]
        if lost:
            notes.append(
                f"{name}: {len(lost)} utterances have no original, so only anonymized speech is used"
            )
            original = None
    parent = enrol[0].path.parent
    trained = train or _training(parent, folder, name, suffix, suffixes)
    if trained is None:
        raise InputError(
            f"{folder}: no training folder train...{suffix} for set {name} (anonymized speech of other"
            " speakers); --train names it"
        )
    before = original_train or (_training(parent, folder, name, "", suffixes) if suffix else None)
    test_set = TestSet(name, lists, speech, original, open_speech(trained, roots), _opened(before, roots))
    return test_set, notes


def _training(parent: Path, folder: Path, name: str, suffix: str, others: Collection[str]) -> Path | None:
    """Return the training folder of a set: of its language, where there are several.

    Args:
        parent: Folder of the set's data folders.
        folder: The whole.
        name: The set.
        suffix: Ending of its name; empty for the originals.
        others: Endings that the originals do not have.
    """
    found: list[Path] = []
    for base in dict.fromkeys((parent, folder, folder / "data")):
        paths = [path for path in sorted(base.iterdir()) if path.is_dir()] if base.is_dir() else []
        found = [path for path in paths if path.name.startswith("train") and path.name.endswith(suffix)]
        if not suffix:
            found = [path for path in found if not path.name.endswith(tuple(others))]
        if found:
            break
    if len(found) < 2:
        return found[0] if found else None
    words = (name.split("_")[0], *LANGUAGES.get(name.split("_")[0], ()))
    matching = [path for path in found if any(word in re.split(r"[_-]", path.name) for word in words)]
    if len(matching) != 1:
        listed = ", ".join(path.name for path in found)
        raise InputError(f"{folder}: several training folders for set {name} ({listed}); --train says which")
    return matching[0]


def _lists(
    enrol: Sequence[_Folder], trials: Sequence[_Folder], plain: Sequence[_Folder], speech: Speech
) -> TrialLists:
    speaker_of = {item.id: item.speaker for item in speech}
    listed = {name for entry in enrol for name in _enrolled(entry, plain)}
    enrolments: dict[str, list[str]] = {}
    for entry in enrol:
        # In the order of utt2spk.
        for _, (item, *_) in read_lines(entry.path / "utt2spk"):
            if not listed or item in listed:
                if item not in speaker_of:
                    raise InputError(f"{entry.path}: utterance {item} is in utt2spk, but has no audio")
                enrolments.setdefault(speaker_of[item], []).append(item)
    rows = [(f"{enrol[0].path}", [name, *items]) for name, items in sorted(enrolments.items())]
    lines = (line for entry in trials for line in read_lines(_table(entry, plain, "trials")))
    lists = check_lists(rows, lines, speaker_of)
    if not lists.trials:
        raise InputError(f"{trials[0].path}: has no trials, at least one is needed")
    tried = {trial.enrolment for trial in lists.trials}
    kept = {name: items for name, items in lists.enrolments.items() if name in tried}
    return TrialLists(kept, lists.trials)


def _enrolled(folder: _Folder, plain: Sequence[_Folder]) -> list[str]:
    """Return the utterances in the file ``enrolls``, empty without such a file."""
    for candidate in (folder, *(other for other in plain if other.role == "enrol")):
        if (candidate.path / "enrolls").is_file():
            return [item for _, fields in read_lines(candidate.path / "enrolls") for item in fields]
    return []


def _table(folder: _Folder, plain: Sequence[_Folder], name: str) -> Path:
    """Return the path of a data folder's list: its own, or that of its original."""
    same = [other.path for other in plain if (other.role, other.part) == (folder.role, folder.part)]
    for candidate in (folder.path, *same):
        if (candidate / name).is_file():
            return candidate / name
    raise InputError(f"{folder.path / name}: no such file, nor in the folder of the originals")


def _is_chain(folder: Path) -> bool:
    """Return whether a folder holds what the stages prepare and anonymize write (``outputs/``)."""
    return (folder / "anonymize").is_dir() and (folder / "prepare").is_dir()


def _open_chain_outputs(folder: Path, systems: Sequence[str] = ()) -> External:
    """Return every released system with the originals beside it.

    Args:
        folder: ``outputs/`` of a chain; ``prepare`` and the systems' ``anonymize`` must be finished.
        systems: Which ones; unless given, all but those that pass speech through, which are the originals
            of every set and no set of their own.

    Raises:
        InputError: A system is not there, or there is none.
        IncompleteInputError: An output is unfinished or changed since.
    """
    public, private = folder / "prepare/public", folder / "prepare/private"
    for part in (public, private):
        require_done(part, part.name)
    original, original_train = Split(private / "private"), Split(public / "attacker")
    systems_found = sorted(path for path in (folder / "anonymize").iterdir() if path.is_dir())
    known = [path.name for path in systems_found if not _passes_through(path / "released", original)]
    missing = [name for name in systems if name not in known]
    if missing or not known:
        raise InputError(
            f"{folder / 'anonymize'}: no system {missing[0] if missing else ''}".rstrip()
            + f" to attack; there is: {', '.join(known) or 'none'}"
        )
    speaker_of = {item.id: item.speaker for item in original}
    lists = read_trials(private / "trials", speaker_of)
    sets = []
    for name in systems or known:
        released, attacker = (folder / "anonymize" / name / part for part in ("released", "attacker"))
        for part in (released, attacker):
            require_done(part, f"{name} {part.name}")
        sets.append(TestSet(name, lists, Split(released), original, Split(attacker), original_train))
    return External(f"outputs of a chain, systems {', '.join(systems or known)}", tuple(sets))


def _passes_through(released: Path, original: Split) -> bool:
    """Return whether a finished system's speech is the original, byte for byte."""
    if not (released / DONE).is_file():
        return False
    speech, first = Split(released), original.utterances[0].id
    return first in speech and speech.flac(first) == original.flac(first)
