"""The three forms of scores that metrics take: counts per score, verification trials, rank sets.

* :class:`ScoreSet`: verification trials, each target or nontarget.
* :class:`RankSet`: every input scored against the same N references, one per speaker.
* :class:`CountTable`: distinct scores in ascending order with how many target and
  nontarget trials stand at each. Every verification metric is a function of this table,
  so tied scores are one step by construction, and a bootstrap replicate is only another
  pair of counts.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from voxveil.runtime.errors import InputError

__all__ = [
    "CountTable",
    "FloatArray",
    "IntArray",
    "RankSet",
    "ScoreSet",
    "TRANSCRIPTS",
    "UndefinedMetricError",
    "WORDS_ALONE",
    "dot",
]

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
BoolArray = NDArray[np.bool_]
_DOT_BLOCK = 8192
#: Attack on the transcripts of the trials, which no system changes: its name, and what stands for its
#: scenario and for the state of its training, enrolments and trials.
WORDS_ALONE, TRANSCRIPTS = "words_alone", "transcripts"


class UndefinedMetricError(Exception):
    """A metric has no value for these scores; the message is the reason shown to people.

    Attributes:
        unbounded: True where the reason is that the value is infinite.
    """

    def __init__(self, reason: str, *, unbounded: bool = False) -> None:
        super().__init__(reason)
        self.unbounded = unbounded


def dot(a: FloatArray | IntArray, b: FloatArray) -> float:
    """Return the sum of products of two 1-D arrays, the same whatever the number of BLAS threads.

    Blocks below the size at which BLAS goes parallel: its threads cost more than they save here, above
    all where processes share the cores.
    """
    return float(sum(a[i : i + _DOT_BLOCK] @ b[i : i + _DOT_BLOCK] for i in range(0, a.size, _DOT_BLOCK)))


@dataclass(frozen=True)
class CountTable:
    """Distinct scores in ascending order with the number of trials at each.

    Attributes:
        values: Distinct scores, ascending, shape ``(G,)``.
        target: Number (or integer weight) of target trials at each, shape ``(G,)``.
        nontarget: The same for nontarget trials, shape ``(G,)``.
        n_target: Sum of ``target``.
        n_nontarget: Sum of ``nontarget``.
    """

    values: FloatArray
    target: IntArray
    nontarget: IntArray
    n_target: int
    n_nontarget: int

    @classmethod
    def from_counts(cls, values: FloatArray, target: IntArray, nontarget: IntArray) -> CountTable:
        """Build from counts, without scores that have no trial.

        Raises:
            UndefinedMetricError: If one class is empty.
        """
        n_target, n_nontarget = int(target.sum()), int(nontarget.sum())
        if n_target == 0 or n_nontarget == 0:
            raise UndefinedMetricError(f"no {'target' if n_target == 0 else 'nontarget'} trial")
        keep = (target + nontarget) > 0
        if not keep.all():
            values, target, nontarget = values[keep], target[keep], nontarget[keep]
        return cls(values, target, nontarget, n_target, n_nontarget)

    @classmethod
    def from_scores(cls, target: Any, nontarget: Any) -> CountTable:
        """Pool tied scores of two classes.

        Args:
            target: Scores of same-speaker trials, shape ``(n_target,)``, finite.
            nontarget: Scores of different-speaker trials, shape ``(n_nontarget,)``, finite.
        """
        t = np.sort(as_scores(target, "target"))
        n = np.sort(as_scores(nontarget, "nontarget"))
        pooled = np.concatenate([t, n])
        pooled.sort(kind="stable")  # two sorted runs: one merge
        first = np.empty(pooled.size, dtype=np.bool_)
        first[0] = True
        np.not_equal(pooled[1:], pooled[:-1], out=first[1:])
        values = pooled if bool(first.all()) else pooled[first]
        return cls(values, _counts(t, values), _counts(n, values), t.size, n.size)

    @property
    def is_constant(self) -> bool:
        """True where all scores are the same number."""
        return self.values.size == 1


def _counts(ordered: FloatArray, values: FloatArray) -> IntArray:
    """Return how many of ``ordered`` equal each of ``values`` (which holds them all)."""
    return np.bincount(np.searchsorted(values, ordered), minlength=values.size).astype(np.int64, copy=False)


def as_scores(scores: Any, name: str) -> FloatArray:
    """Return ``scores`` as a 1-D float array.

    Raises:
        InputError: If it is empty, not 1-D, not numeric or not finite.
    """
    try:
        array = np.asarray(scores, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InputError(f"{name}: scores must be numbers, got {type(scores).__name__}: {error}") from None
    if array.ndim != 1 or array.size == 0:
        raise InputError(
            f"{name}: got an array of shape {array.shape}; it must be 1-D with at least one score"
        )
    bad = ~np.isfinite(array)
    if bad.any():
        where = int(np.argmax(bad))
        raise InputError(f"{name}[{where}] is {array[where]}; every score must be a finite number")
    return array


@dataclass(frozen=True)
class ScoreSet:
    """Verification trials.

    Attributes:
        scores: Higher = more alike, shape ``(n,)``, finite.
        is_target: True where both sides are the same speaker, shape ``(n,)``.
        enrol_speaker: Speaker index of the enrolled side, shape ``(n,)``, or None.
        test_speaker: Speaker index of the tested side, shape ``(n,)``, or None.
        n_speakers: Number of distinct speakers, or None where unknown.
        speaker_reason: Why speakers are unknown (no names in it), or None.
        speakers: Name of each speaker index, or None where only who is the same is known.
    """

    scores: FloatArray
    is_target: BoolArray
    enrol_speaker: IntArray | None = None
    test_speaker: IntArray | None = None
    n_speakers: int | None = None
    speaker_reason: str | None = None
    speakers: tuple[str, ...] | None = None

    @classmethod
    def from_scores(cls, target: Any, nontarget: Any, reason: str | None = None) -> ScoreSet:
        """Build from the scores of the two classes, speakers unknown."""
        t, n = as_scores(target, "target"), as_scores(nontarget, "nontarget")
        labels = np.zeros(t.size + n.size, dtype=np.bool_)
        labels[: t.size] = True
        why = reason or "the scores carry no speakers"
        return cls(np.concatenate([t, n]), labels, speaker_reason=why)

    @classmethod
    def of_speakers(
        cls,
        scores: FloatArray,
        is_target: BoolArray,
        enrol: IntArray,
        test: IntArray,
        speakers: tuple[str, ...] | None,
    ) -> ScoreSet:
        """Build from trials whose speakers are known, and count these.

        Args:
            scores: Shape ``(n,)``.
            is_target: Shape ``(n,)``.
            enrol: Speaker index of the enrolled side, shape ``(n,)``.
            test: Speaker index of the tested side, shape ``(n,)``.
            speakers: Name of each speaker index, where known.
        """
        count = int(np.unique(np.concatenate([enrol, test])).size)
        return cls(scores, is_target, enrol, test, count, speakers=speakers)

    @property
    def target(self) -> FloatArray:
        """Scores of target trials."""
        return self.scores[self.is_target]

    @property
    def nontarget(self) -> FloatArray:
        """Scores of nontarget trials."""
        return self.scores[~self.is_target]

    def table(self) -> CountTable:
        """Return the pooled count table."""
        return CountTable.from_scores(self.target, self.nontarget)


@dataclass(frozen=True)
class RankSet:
    """Every input scored against the same N references, one reference per speaker.

    Attributes:
        scores: Higher = more alike, shape ``(n_inputs, N)``, finite.
        speaker_index: Column of each input's own speaker, shape ``(n_inputs,)``.
        speakers: Name of each reference speaker, length N.
    """

    scores: NDArray[np.floating[Any]]
    speaker_index: IntArray
    speakers: tuple[str, ...]

    @classmethod
    def from_labels(
        cls, scores: Any, input_labels: Any, reference_labels: Any, name: str = "scores"
    ) -> RankSet:
        """Check and build.

        Args:
            scores: Shape ``(n_inputs, N)``.
            input_labels: Speaker of each row, integers or text, shape ``(n_inputs,)``.
            reference_labels: Speaker of each column, all different, shape ``(N,)``.
            name: What to call it in an error.

        Raises:
            InputError: If shapes disagree, a score is not finite, N < 2, a reference label stands
                twice or an input's speaker is not among the references.
        """
        matrix = np.asarray(scores)
        if matrix.dtype.kind != "f":
            matrix = matrix.astype(np.float64)
        rows, columns = np.asarray(input_labels), np.asarray(reference_labels)
        if matrix.ndim != 2 or rows.shape != (matrix.shape[0],) or columns.shape != (matrix.shape[1],):
            raise InputError(
                f"{name}: scores {matrix.shape}, input_labels {rows.shape} and reference_labels "
                f"{columns.shape} do not fit; they must be (inputs, references), (inputs,) and (references,)"
            )
        if matrix.shape[0] < 1 or matrix.shape[1] < 2:
            raise InputError(
                f"{name}: got {matrix.shape[0]} inputs and {matrix.shape[1]} references; need 1 and 2"
            )
        bad = ~np.isfinite(matrix)
        if bad.any():
            i, j = (int(x) for x in np.unravel_index(int(np.argmax(bad)), matrix.shape))
            raise InputError(
                f"{name}: scores[{i}, {j}] is {matrix[i, j]}; every score must be a finite number"
            )
        names = [str(x) for x in columns.tolist()]
        position = {label: j for j, label in enumerate(names)}
        if len(position) < len(names):
            label = next(label for j, label in enumerate(names) if label in names[:j])
            raise InputError(
                f"{name}: reference label {label} is listed twice; each speaker has one reference"
            )
        reference_indices = [position.get(str(value)) for value in rows.tolist()]
        if None in reference_indices:
            i = reference_indices.index(None)
            raise InputError(f"{name}: input {i} is of speaker {rows[i]}, who is not among the references")
        return cls(matrix, np.array(reference_indices, dtype=np.int64), tuple(names))

    @property
    def n_references(self) -> int:
        """Number of references N."""
        return len(self.speakers)

    @property
    def n_inputs(self) -> int:
        """Number of inputs."""
        return int(self.speaker_index.size)

    def pairs(self) -> ScoreSet:
        """Return all entries as verification trials: target where speakers match."""
        n_inputs, n = self.scores.shape
        test = np.repeat(self.speaker_index, n)
        enrol = np.tile(np.arange(n, dtype=np.int64), n_inputs)
        flat = np.ascontiguousarray(self.scores, dtype=np.float64).ravel()
        return ScoreSet(flat, test == enrol, enrol, test, n, speakers=self.speakers)
