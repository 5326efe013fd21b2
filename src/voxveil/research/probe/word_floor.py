"""Word errors of resampled words against the floor of every locally private mechanism.

The floor is computed twice: for sentences drawn from the public language model pi, where it is a theorem,
and for the text of a test set, where it is an estimate that a better language model lowers. Beside it stand
the expected word errors of resampled words on both.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from voxveil.privacy.audit.floor import floor_of
from voxveil.privacy.noise import PublicNoise
from voxveil.privacy.word_language import WordLanguage
from voxveil.privacy.words import Words
from voxveil.runtime.atomic import read_json
from voxveil.runtime.errors import InputError
from voxveil.runtime.terminal import align_columns
from voxveil.utility.resampled_words import expected_errors

__all__ = ["RESULTS", "FloorKnobs", "floor_lines", "floor_results", "read_floor", "read_texts"]

#: The name of the results in their folder.
RESULTS = "words.json"


@dataclass(frozen=True)
class FloorKnobs:
    """Parameters.

    Attributes:
        epsilons: Of an utterance, each at least ln(1 / alpha).
        alpha: Of the mechanism.
        assumed: Word errors of the recognizer in % that are assumed on the test set.
        drawn: Sentences drawn from pi for the floor.
        judged: Of those, sentences on which word errors are computed.
        confidence: Of the floor on drawn sentences.
        seed: Of the draws, which are public.
    """

    epsilons: tuple[float, ...] = (10, 20, 30, 40, 50, 60, 72, 82, 102, 120, 150, 200, 300)
    alpha: float = 0.1
    assumed: float = 4.0
    drawn: int = 50_000
    judged: int = 2_000
    confidence: float = 0.95
    seed: int = 17

    def __post_init__(self) -> None:
        """Check that the mechanism exists at each epsilon, before a language is made for it."""
        if not 0.0 < self.alpha < 1.0:
            raise InputError(f"--alpha must be above 0 and below 1, got {self.alpha:g}")
        least = -math.log(self.alpha)
        if not min(self.epsilons) >= least:
            raise InputError(
                f"--epsilon must be at least ln(1 / alpha) = {least:.3g}, got {min(self.epsilons):g}"
            )


def read_texts(paths: Sequence[Path]) -> list[str]:
    """Return the texts of lines ``ID TEXT`` of files, and of every ``*.trans.txt`` below folders.

    Raises:
        InputError: A path without such lines.
    """
    found: list[str] = []
    for path in paths:
        files = sorted(path.rglob("*.trans.txt")) if path.is_dir() else [path]
        if not files or not all(file.is_file() for file in files):
            raise InputError(
                f"{path}: no transcripts: neither a file of lines 'ID TEXT' nor *.trans.txt below"
            )
        lines = (line for file in files for line in file.read_text(encoding="utf-8").splitlines())
        found += [line.strip().partition(" ")[2] for line in lines]
    return found


def floor_results(
    language: WordLanguage, tested: Sequence[Words], knobs: FloorKnobs, facts: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """Return floor and expected word errors, on sentences drawn from pi and on a test set.

    Args:
        language: pi.
        tested: The true words of the test set, at least one in the vocabulary.
        knobs: Parameters.
        facts: Further facts on pi, for the reader.
    """
    noise = PublicNoise(knobs.seed, "word_floor")
    drawn = language.draw(knobs.drawn, noise.words)
    coded = [language.encode(words.sequence) for words in tested]
    known = [code for code in coded if code]
    if not known:
        raise InputError("no tested sentence has all of its words in the vocabulary of the language")
    judged = [Words(language.decode(string)) for string in drawn[: knobs.judged]]
    sets: dict[str, Any] = {}
    for name, strings, references, confidence, further in (
        ("drawn", drawn, judged, knobs.confidence, 0.0),
        ("text", known, tested, 0.0, knobs.assumed),
    ):
        logs = language.log_probabilities(strings)
        lengths = np.array([len(string) for string in strings])
        floor = floor_of(
            logs,
            lengths,
            knobs.epsilons,
            vocabulary=len(language.words),
            longest=language.longest,
            confidence=confidence,
        )
        found = expected_errors(
            references,
            references,
            language,
            knobs.epsilons,
            noise,
            alpha=knobs.alpha,
            draws=20 if name == "text" else 1,
            further=further,
        )
        sets[name] = {
            "floor": floor.to_json(),
            "resampled": [one.to_json() for one in found],
            "sentences": len(references),
            "words": sum(len(words) for words in references),
            "in_vocabulary": sum(language.encode(words.sequence) is not None for words in references),
            "nat_per_word": float(-logs.sum() / lengths.sum()),
            "assumed_errors": further,
        }
    return {
        "format": 1,
        "language": {
            **(facts or {}),
            "digest": language.digest,
            "vocabulary": len(language.words),
            "longest": language.longest,
            "order": language.order,
        },
        "alpha": knobs.alpha,
        "sets": sets,
    }


def read_floor(folder: Path) -> dict[str, Any] | None:
    """Return the results in a folder, None where there are none.

    Raises:
        InputError: The file is not one of them.
    """
    path = folder / RESULTS
    if not path.is_file():
        return None
    found = read_json(path)
    try:
        if found["format"] != 1:
            raise KeyError("format")
        for part in found["sets"].values():
            floor, rows = part["floor"], part["resampled"]
            if not len(rows) == len(floor["epsilons"]) == len(floor["errors"]) == len(floor["exact"]):
                raise KeyError("resampled")
            [(row["epsilon"], row["errors"], row["exact"]) for row in rows]
        found["sets"]["drawn"], found["sets"]["text"], found["alpha"], found["language"]["digest"]
    except (KeyError, TypeError, AttributeError) as error:
        raise InputError(f"{path}: not results of 'voxveil probe words' ({error})") from None
    return dict(found)


def floor_lines(results: Mapping[str, Any]) -> list[str]:
    """Return the tables as lines of text."""
    lines = []
    for name, part in results["sets"].items():
        floor = part["floor"]
        source = (
            f"sentences drawn from pi: a theorem, confidence {floor['confidence']:g}"
            if name == "drawn"
            else f"text: the floor is an estimate; {part['assumed_errors']:g} % recognition errors assumed"
        )
        lines += [
            "",
            f"{part['sentences']} {source}",
            f"{part['nat_per_word']:.2f} nat a word; {part['in_vocabulary']} in the vocabulary",
        ]
        header = [
            "epsilon",
            "kept %",
            "right %",
            "right at most %",
            "WER %",
            "WER bounded %",
            "WER at least %",
        ]
        rows = [
            [
                f"{row['epsilon']:g}",
                *(f"{value:.1f}" for value in (row["keepable"], row["exact"], 100 * most)),
                *(f"{value:.1f}" for value in (row["errors"], row["bounded"], least)),
            ]
            for row, most, least in zip(part["resampled"], floor["exact"], floor["errors"], strict=True)
        ]
        lines += align_columns([header, *rows], rule=True, indent="  ")
    return lines[1:]
