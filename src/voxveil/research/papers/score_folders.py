"""Score files of one attack in a folder, and of many systems in a folder each."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from voxveil.metrics.data import CountTable
from voxveil.metrics.evaluation import read_evaluation
from voxveil.metrics.score_files import Evaluation
from voxveil.runtime.errors import InputError

__all__ = ["ScoreFiles", "find_score_files", "find_systems"]

#: Matplotlib reads a dollar sign as mathematics, and its own font has few alphabets.
_NAME = re.compile(r"[A-Za-z0-9_.+-]+( [A-Za-z0-9_.+-]+)*")
_SCORES = ("scores.txt", "scores.txt.gz", "scores")
_TRIALS = ("trials.txt", "trials.txt.gz", "trials")


@dataclass(frozen=True)
class ScoreFiles:
    """Score files of one attack, as read by ``voxveil evaluate``.

    Attributes:
        scores: Text score file, or an .npz.
        trials: Trial list of a text score file.
        rank: Rank matrix beside it, where there is one.
        utt2spk: Speakers, where given.
        enrolments: Enrolment list, where given.
    """

    scores: Path
    trials: Path | None = None
    rank: Path | None = None
    utt2spk: Path | None = None
    enrolments: Path | None = None

    def read(self) -> Evaluation:
        """Return the scores; raises :class:`InputError` naming what does not fit."""
        return read_evaluation(
            self.scores, self.trials, rank=self.rank, utt2spk=self.utt2spk, enrolments=self.enrolments
        )

    def table(self) -> CountTable:
        """Return the verification scores."""
        return self.read().scores.table()


def find_systems(folder: Path) -> dict[str, ScoreFiles]:
    """Return the score files of every system, by the name of its folder.

    Raises:
        InputError: There is no folder in it, or one holds no score file or several, is a link to nothing, or
            has a name that a figure could not show.
    """
    folder = Path(folder)
    if not folder.is_dir():
        raise InputError(f"--scores {folder}: no such folder")
    entries = sorted(path for path in folder.iterdir() if not path.name.startswith("."))
    for path in entries:
        if path.is_symlink() and not path.exists():
            raise InputError(f"--scores {folder}: {path.name!r} is a link to nothing")
    found = [path for path in entries if path.is_dir()]
    if not found:
        raise InputError(f"--scores {folder}: holds no folder; each system has one, e.g. B3/scores.txt")
    for path in found:
        if not _NAME.fullmatch(path.name):
            raise InputError(
                f"--scores {folder}: folder {path.name!r} is to name a system; a name has letters A to Z,"
                " digits, '_', '-', '.', '+' and single spaces only"
            )
    return {path.name: find_score_files(path) for path in found}


def find_score_files(folder: Path) -> ScoreFiles:
    """Return the score files of one attack: text with a trial list, or one .npz.

    Raises:
        InputError: There is none, or several.
    """
    scores, trials = _first(folder, _SCORES), _first(folder, _TRIALS)
    rank = _first(folder, ("rank.npz",))
    if scores is None:
        others = sorted(path for path in folder.glob("*.npz") if path != rank)
        matrices = others or ([rank] if rank else [])
        if len(matrices) != 1:
            seen = ", ".join(path.name for path in matrices) or "none"
            raise InputError(
                f"{folder}: needs scores.txt and trials.txt (or .gz), or one .npz; score files there: {seen}"
            )
        return ScoreFiles(matrices[0], rank=rank if others else None)
    if trials is None:
        raise InputError(f"{folder}: {scores.name} without trials.txt (ENROLMENT UTTERANCE target|nontarget)")
    utt2spk = _first(folder, ("utt2spk",))
    # An enrolment list says which speaker an enrolment is only together with utt2spk.
    enrolments = _first(folder, ("enrol.scp", "enrolments")) if utt2spk else None
    return ScoreFiles(scores, trials, rank, utt2spk, enrolments)


def _first(folder: Path, names: tuple[str, ...]) -> Path | None:
    return next((folder / name for name in names if (folder / name).is_file()), None)
