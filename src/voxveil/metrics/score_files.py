"""Readers of score files and trial lists; an inconsistent file is an error that names it.

Text files are whitespace-separated, optionally gzipped: trials ``ENROLMENT UTTERANCE
target|nontarget``, scores ``ENROLMENT UTTERANCE SCORE``, utt2spk ``UTTERANCE SPEAKER``, enrolments
``ENROLMENT UTTERANCE...``. Arrays come in one .npz with ``target`` and ``nontarget``, or with
``scores[input, reference]``, ``input_labels``, ``reference_labels``.
"""

from __future__ import annotations

import gzip
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from tokenize import TokenError
from typing import Any

import numpy as np
from numpy.typing import NDArray

from voxveil.metrics.data import FloatArray, IntArray, RankSet, ScoreSet
from voxveil.runtime.errors import InputError

__all__ = [
    "Evaluation",
    "Trials",
    "labelled_ranks",
    "read_enrolments",
    "read_fields",
    "read_npz",
    "read_rank_npz",
    "read_scores",
    "read_trials",
    "read_utt2spk",
]

_MAX_SHOWN = 60
#: Integers up to here are exact in float64; beyond it different scores would become equal.
_MAX_INTEGER = 2**53


@dataclass(frozen=True)
class Trials:
    """A trial list.

    Attributes:
        path: Where it came from.
        enrolments: Distinct enrolment ids, in order of appearance.
        utterances: Distinct tested utterance ids, in order of appearance.
        enrolment: Index into ``enrolments``, shape ``(n,)``.
        utterance: Index into ``utterances``, shape ``(n,)``.
        is_target: Shape ``(n,)``.
    """

    path: Path
    enrolments: tuple[str, ...]
    utterances: tuple[str, ...]
    enrolment: IntArray
    utterance: IntArray
    is_target: NDArray[np.bool_]

    def pair(self, key: int) -> str:
        """Return the two ids of a pair key for a message."""
        e, u = divmod(key, len(self.utterances))
        return f"{self.enrolments[e]} {self.utterances[u]}"

    @property
    def keys(self) -> IntArray:
        """One number per trial: equal for equal pairs."""
        return self.enrolment * len(self.utterances) + self.utterance


@dataclass(frozen=True)
class Evaluation:
    """Content of a score file: trials with scores, speakers and ranks.

    Attributes:
        scores: The trials.
        ranks: The same inputs against the same N references, or None.
        rank_reason: Why ``ranks`` is None (no names in it).
    """

    scores: ScoreSet
    ranks: RankSet | None
    rank_reason: str | None


def _brief(token: str) -> str:
    return token if len(token) <= _MAX_SHOWN else f"{token[:_MAX_SHOWN]}... ({len(token)} characters)"


def read_fields(
    path: Path, n_fields: int, layout: str, *, more: bool = False
) -> Iterator[tuple[int, list[str]]]:
    """Yield (line number, fields) of a text file, gzipped or not; empty lines are passed over.

    Args:
        path: The file.
        n_fields: Fields a line must have (at least, with ``more``).
        layout: What a line should look like, for the message.
        more: Whether further fields may follow.

    Raises:
        InputError: If the file is missing, broken, not UTF-8 or a line has another number of fields.
    """
    try:
        with path.open("rb") as raw:
            zipped = raw.read(2) == b"\x1f\x8b"
        # utf-8-sig: a byte order mark, which some editors write, is no part of the first name.
        with (gzip.open if zipped else open)(path, "rt", encoding="utf-8-sig") as handle:
            for number, line in enumerate(handle, 1):
                fields = line.split()
                if len(fields) != n_fields and not (more and len(fields) > n_fields):
                    if not fields:
                        continue
                    raise InputError(f"{path}:{number}: got {len(fields)} fields; a line is '{layout}'")
                yield number, fields
    except UnicodeDecodeError:
        raise InputError(f"{path}: not a UTF-8 text file; a line is '{layout}'") from None
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise InputError(f"{path}: broken gzip file ({error})") from None
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror or error})") from None


def read_trials(path: Path, *, allow_repeats: bool = False) -> Trials:
    """Read a trial list.

    Raises:
        InputError: If a label is another word, a pair stands twice (without ``allow_repeats``) or with
            two labels, an utterance is both enrolled and tested, or a class is empty.
    """
    path = Path(path)
    enrolments: dict[str, int] = {}
    utterances: dict[str, int] = {}
    e_index: list[int] = []
    u_index: list[int] = []
    labels = bytearray()
    for number, (enrolment, utterance, label) in read_fields(path, 3, "ENROLMENT UTTERANCE target|nontarget"):
        if label not in ("target", "nontarget"):
            raise InputError(
                f"{path}:{number}: label of {_brief(enrolment)} {_brief(utterance)} is"
                f" {_brief(label)!r}; allowed: target, nontarget"
            )
        labels.append(label == "target")
        e_index.append(enrolments.setdefault(enrolment, len(enrolments)))
        u_index.append(utterances.setdefault(utterance, len(utterances)))
    both = enrolments.keys() & utterances.keys()
    if both:
        raise InputError(
            f"{path}: {min(both)} is both enrolled and tested; an utterance may stand on one side only"
        )
    trials = Trials(
        path,
        tuple(enrolments),
        tuple(utterances),
        np.array(e_index, dtype=np.int64),
        np.array(u_index, dtype=np.int64),
        np.frombuffer(labels, dtype=np.uint8) == 1,
    )
    for name, present in (("target", trials.is_target.any()), ("nontarget", (~trials.is_target).any())):
        if not present:
            raise InputError(f"{path}: no {name} trial; both classes are needed")
    _check_repeats(trials, allow_repeats)
    return trials


def _check_repeats(trials: Trials, allow_repeats: bool) -> None:
    keys = trials.keys
    order = np.argsort(keys, kind="stable")
    same = keys[order][1:] == keys[order][:-1]
    if not same.any():
        return
    labels = trials.is_target[order]
    conflict = same & (labels[1:] != labels[:-1])
    if conflict.any():
        key = int(keys[order][int(np.argmax(conflict))])
        raise InputError(f"{trials.path}: trial {trials.pair(key)} is listed both as target and as nontarget")
    if not allow_repeats:
        key = int(keys[order][int(np.argmax(same))])
        raise InputError(
            f"{trials.path}: trial {trials.pair(key)} is listed twice; --allow-repeats keeps each"
        )


def read_scores(path: Path, trials: Trials, *, allow_repeats: bool = False) -> tuple[IntArray, FloatArray]:
    """Read the scores of a trial list.

    Repeated pairs, where allowed, are kept each; they are never averaged.

    Returns:
        Index of each score's trial in ``trials``, and the scores, both in the order of the file.

    Raises:
        InputError: If a score is not a finite number, a trial has no score, a score no trial, or a
            pair is scored twice (without ``allow_repeats``).
    """
    path = Path(path)
    enrolments = {name: i for i, name in enumerate(trials.enrolments)}
    utterances = {name: i for i, name in enumerate(trials.utterances)}
    n_utterances = len(utterances)
    key_list: list[int] = []
    values: list[float] = []
    for number, (enrolment, utterance, text) in read_fields(path, 3, "ENROLMENT UTTERANCE SCORE"):
        try:
            value = float(text)
        except ValueError:
            value = float("nan")
        if not -np.inf < value < np.inf or "_" in text:
            raise InputError(
                f"{path}:{number}: score of {_brief(enrolment)} {_brief(utterance)} is {_brief(text)};"
                " it must be a finite number"
            )
        e, u = enrolments.get(enrolment), utterances.get(utterance)
        if e is None or u is None:
            raise InputError(
                f"{path}:{number}: score of {_brief(enrolment)} {_brief(utterance)} has no trial in"
                f" {trials.path}"
            )
        key_list.append(e * n_utterances + u)
        values.append(value)
    keys, scores = np.array(key_list, dtype=np.int64), np.array(values)

    trial_keys, first, listed = np.unique(trials.keys, return_index=True, return_counts=True)
    at = np.searchsorted(trial_keys, keys)
    unknown = (at == trial_keys.size) | (trial_keys[np.minimum(at, trial_keys.size - 1)] != keys)
    if unknown.any():
        key = int(keys[int(np.argmax(unknown))])
        raise InputError(f"{path}: score of {trials.pair(key)} has no trial in {trials.path}")
    scored = np.bincount(at, minlength=trial_keys.size)
    if (scored < listed).any():
        missing = int(np.count_nonzero(scored < listed))
        key = int(trial_keys[int(np.argmax(scored < listed))])
        more = f" (and {missing - 1} more trials)" if missing > 1 else ""
        raise InputError(f"{path}: no score for trial {trials.pair(key)}{more} of {trials.path}")
    if not allow_repeats and (scored > 1).any():
        key = int(trial_keys[int(np.argmax(scored > 1))])
        raise InputError(f"{path}: {trials.pair(key)} is scored twice; --allow-repeats keeps each")
    return first[at].astype(np.int64), scores


def read_utt2spk(path: Path) -> dict[str, str]:
    """Read ``UTTERANCE SPEAKER`` lines; an utterance of two speakers is refused."""
    path = Path(path)
    speakers: dict[str, str] = {}
    for number, (utterance, speaker) in read_fields(path, 2, "UTTERANCE SPEAKER"):
        known = speakers.setdefault(utterance, speaker)
        if known != speaker:
            raise InputError(f"{path}:{number}: utterance {utterance} is of {speaker}, but of {known} above")
    return speakers


def read_enrolments(path: Path) -> dict[str, list[str]]:
    """Read ``ENROLMENT UTTERANCE...`` lines; an enrolment's lines add up."""
    path = Path(path)
    enrolments: dict[str, list[str]] = {}
    for _, fields in read_fields(path, 2, "ENROLMENT UTTERANCE...", more=True):
        enrolments.setdefault(fields[0], []).extend(fields[1:])
    return enrolments


def read_npz(path: Path) -> dict[str, NDArray[Any]]:
    """Read the arrays of an .npz; never unpickles.

    Raises:
        InputError: If it is missing, broken, holds objects, has other keys than the two known forms, or
            scores that are no real numbers which float64 holds.
    """
    path = Path(path)
    try:
        with np.load(path, allow_pickle=False) as archive:
            if not isinstance(archive, np.lib.npyio.NpzFile):
                raise InputError(f"{path}: not an .npz archive")
            arrays = {key: _member(archive, key, path) for key in archive.files}
    except FileNotFoundError:
        raise InputError(f"{path}: no such file") from None
    except _DAMAGE as error:
        raise InputError(f"{path}: not a readable .npz ({_reason(error)})") from None
    forms = ({"target", "nontarget"}, {"scores", "input_labels", "reference_labels"})
    if not any(form <= arrays.keys() for form in forms):
        raise InputError(
            f"{path}: holds {', '.join(sorted(arrays)) or 'nothing'}; it needs target and nontarget, "
            "or scores, input_labels and reference_labels"
        )
    for key in ("target", "nontarget", "scores"):
        if key in arrays:
            _require_numbers(arrays[key], key, path)
    return arrays


_DAMAGE = (
    *(ValueError, OSError, EOFError, KeyError, TypeError, SyntaxError, TokenError, NotImplementedError),
    *(RuntimeError, MemoryError, OverflowError, zipfile.BadZipFile, zlib.error),
)


def _member(archive: Any, key: str, path: Path) -> NDArray[Any]:
    try:
        array: NDArray[Any] = archive[key]
    except _DAMAGE as error:
        raise InputError(f"{path}: array {key} is not readable ({_reason(error)})") from None
    if not isinstance(array, np.ndarray):
        raise InputError(f"{path}: member {key} is not an array")
    return array


def _reason(error: BaseException) -> str:
    # NumPy's own words advise to unpickle.
    if "allow_pickle" in str(error):
        return "it holds pickled objects, which are never loaded; save numbers and text"
    return _brief(" ".join(str(error).split())) or type(error).__name__


def _require_numbers(array: NDArray[Any], key: str, path: Path) -> None:
    kind = array.dtype.kind
    if kind not in "fiu" or array.dtype.itemsize > np.dtype(np.float64).itemsize:
        raise InputError(
            f"{path}: array {key} has dtype {array.dtype}; scores must be real numbers"
            " (float16, float32, float64 or integers)"
        )
    if kind in "iu" and array.size and (array.max() > _MAX_INTEGER or array.min() < -_MAX_INTEGER):
        raise InputError(
            f"{path}: array {key} of dtype {array.dtype} holds integers beyond 2^53, which float64 cannot"
            " tell apart"
        )


def read_rank_npz(path: Path) -> RankSet:
    """Read the rank form of an .npz."""
    arrays = read_npz(path)
    if "scores" not in arrays:
        raise InputError(
            f"{path}: holds target and nontarget; ranks need scores, input_labels and reference_labels"
        )
    return labelled_ranks(arrays, path)


def labelled_ranks(arrays: Mapping[str, NDArray[Any]], path: Path) -> RankSet:
    """Return the rank form of the arrays of an .npz; ``path`` names it in an error."""
    return RankSet.from_labels(
        arrays["scores"], arrays["input_labels"], arrays["reference_labels"], str(path)
    )
