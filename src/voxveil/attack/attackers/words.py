"""The attacker who reads: what a recognizer finds in speech, as TF-IDF of words and of character n-grams.

What somebody speaks of, and the words they choose, identify them without their voice. The same vectors of
the corpus's transcripts (:mod:`voxveil.attack.transcripts`) show what no system that keeps the words hides.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from voxveil.attack.attackers.interface import TrainedAttacker, TrainingSetup, attacker_facts, training_clips
from voxveil.attack.backends import Cosine
from voxveil.attack.recognized import WordSource
from voxveil.corpus.split import Speech
from voxveil.runtime.arrays import read_arrays, write_arrays
from voxveil.runtime.atomic import write_json
from voxveil.runtime.errors import InputError, optional_module
from voxveil.runtime.terminal import Progress

__all__ = ["TextWeights", "WordsAttacker"]

#: Entries of the hash table of each analysis. Terms that public speech lacks keep an entry and the largest
#: weight: what only one speaker talks about gives most away, and a learnt vocabulary would lack it.
_ENTRIES = 2**14
#: Analyses of scikit-learn: n-grams of 2 to 5 characters inside words, and one or two words.
_ANALYSES: tuple[dict[str, Any], ...] = (
    {"analyzer": "char_wb", "ngram_range": (2, 5)},
    {"analyzer": "word", "ngram_range": (1, 2), "token_pattern": r"\S+"},
)
_WEIGHTS = "weights.npz"


@dataclass(frozen=True)
class TextWeights:
    """Inverse document frequencies of hashed terms: ln((1 + N) / (1 + n)) + 1, n of N texts hold the term.

    Attributes:
        weights: (2, entries) one row for each analysis, at least 1.
    """

    weights: NDArray[np.float64]

    @classmethod
    def learn(cls, texts: Iterable[Sequence[str]]) -> TextWeights:
        """Count the terms of public texts, each a sequence of normalized words."""
        joined = [" ".join(words) for words in texts]
        present = np.stack([np.asarray((c > 0).sum(axis=0)).ravel() for c in _counts(joined)])
        return cls(np.log((1.0 + len(joined)) / (1.0 + present)) + 1.0)

    @property
    def size(self) -> int:
        """Length of a vector."""
        return self.weights.size

    def vector(self, words: Sequence[str]) -> NDArray[np.float32]:
        """Return the (size,) unit-norm vector of a text; zeros where it has no words.

        A term that occurs t times weighs (1 + ln t) times its inverse document frequency. Each analysis is
        scaled to norm 1, so words and characters count alike.
        """
        parts = []
        for counts, weights in zip(_counts([" ".join(words)]), self.weights, strict=True):
            part = np.zeros(len(weights))
            part[counts.indices] = (1.0 + np.log(counts.data)) * weights[counts.indices]
            parts.append(part / max(float(np.linalg.norm(part)), 1e-12))
        whole = np.concatenate(parts)
        unit: NDArray[np.float32] = (whole / max(float(np.linalg.norm(whole)), 1e-12)).astype(np.float32)
        return unit


@dataclass(frozen=True)
class WordsAttacker:
    """TF-IDF of recognized words, compared by cosine with the mean of the enrolment.

    An utterance without any recognized word has the vector zero, and scores 0 against everybody.

    Attributes:
        source: The recognizer.
        speakers: Ids of the public speakers whose words set the weights.
        training: State of their speech, ``original`` or ``anonymized``.
        weights: Inverse document frequencies in their recognized words.
    """

    source: WordSource
    speakers: Sequence[str]
    training: str
    weights: TextWeights

    name = "words"
    backend = Cosine()

    @property
    def blank(self) -> NDArray[np.float32]:
        """Vector of an utterance in which no word is recognized."""
        return np.zeros(self.weights.size, np.float32)

    @classmethod
    def train(cls, speech: Speech, setup: TrainingSetup) -> TrainedAttacker:
        """Recognize public speech and count its terms."""
        source = WordSource.named(setup.params)
        recognized = source.open()
        progress = Progress("words of public speech", len(list(speech)), "utterance")
        texts = []
        for done, (name, audio) in enumerate(training_clips(speech), 1):
            texts.append(recognized.words(audio, name))
            progress.update(done)
        return TrainedAttacker(cls(source, speech.speakers, setup.training, TextWeights.learn(texts)))

    def embed(self, audio: NDArray[np.float32], name: str) -> NDArray[np.float32]:
        """Return the (E,) unit-norm vector of the recognized words; zero where there are none."""
        return self.weights.vector(self.source.open().words(audio, name))

    def save(self, folder: Path) -> None:
        """Write ``model.json``, ``weights.npz`` and a copy of an imported recognizer."""
        facts = {**attacker_facts(self), **self.source.write(Path(folder))}
        write_json(Path(folder) / "model.json", {"format": 1, **facts})
        write_arrays(Path(folder) / _WEIGHTS, {"weights": self.weights.weights})

    @classmethod
    def load(cls, folder: Path, content: dict[str, Any]) -> WordsAttacker:
        """Read the attacker; ``content`` is its checked ``model.json``.

        Raises:
            InputError: A file is missing, or the weights have another shape.
        """
        path = Path(folder) / _WEIGHTS
        weights = read_arrays(path, ["weights"])["weights"]
        shape = (len(_ANALYSES), _ENTRIES)
        if weights.shape != shape or not np.isfinite(weights).all():
            raise InputError(f"{path}: weights must be finite numbers of shape {shape}, got {weights.shape}")
        source = WordSource.read(Path(folder), content)
        return cls(source, content["speakers"], content["training"], TextWeights(weights))


def _counts(texts: Sequence[str]) -> list[Any]:
    """Return a (texts, entries) sparse matrix of how often each hashed term occurs, for each analysis."""
    text = optional_module("sklearn.feature_extraction.text", "train", "scikit-learn")
    return [
        text.HashingVectorizer(n_features=_ENTRIES, alternate_sign=False, norm=None, **analysis).transform(
            texts
        )
        for analysis in _ANALYSES
    ]
