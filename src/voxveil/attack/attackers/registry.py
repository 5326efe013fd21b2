"""Registry of attackers by name: train one, load one, list those of a folder.

An attacker lies in a folder of its own whose ``model.json`` says which kind it is. Further seeds of a
kind lie beside it (``ecapa``, ``ecapa.seed2``); the strongest counts.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from voxveil.attack.attackers.interface import Attacker
from voxveil.config.fields import listed
from voxveil.config.networks import TrainAttackerParams
from voxveil.corpus.split import Speech
from voxveil.runtime.atomic import read_json
from voxveil.runtime.errors import InputError, ParamsError
from voxveil.runtime.seeding import stream_seed
from voxveil.training.loop import CurveSink

__all__ = [
    "KINDS",
    "TrainedAttacker",
    "attacker_folder",
    "find_attackers",
    "listed_kinds",
    "load_attacker",
    "seeds_of",
    "train_attacker",
]

#: What each kind is, in one line.
KINDS = {
    "ecapa": "ECAPA-TDNN, cosine",
    "xvector_plda": "x-vector, LDA, length normalization, PLDA",
    "f0_histogram": "F0 histogram (pYIN), Euclidean distance",
    "phone_histogram": "histogram of a codebook of sounds, Euclidean distance",
    "prosody": "F0, energy and rhythm, LDA, length normalization, PLDA",
    "wavlm": "WavLM features (mean, deviation), LDA, length normalization, PLDA",
    "wavlm_ecapa": "WavLM features, ECAPA-TDNN, cosine",
}
#: Kinds that a seed changes.
_SEEDED = ("ecapa", "xvector_plda", "phone_histogram", "wavlm_ecapa")


@dataclass(frozen=True)
class TrainedAttacker:
    """A trained attacker with its training curve.

    Attributes:
        attacker: Ready to embed.
        curve: Points of its loss; empty where nothing is trained step by step.
        accuracy: Training accuracy in [0, 1], where there is one.
    """

    attacker: Attacker
    curve: list[dict[str, float]] = field(default_factory=list)
    accuracy: float | None = None


def listed_kinds(text: str) -> tuple[str, ...]:
    """Return the kinds that ``train_attacker.kinds`` lists.

    Raises:
        ParamsError: There is none, one is unknown or stands twice.
    """
    kinds = listed(text)
    for kind in kinds:
        if kind not in KINDS:
            raise ParamsError(f"train_attacker.kinds: no attacker {kind!r}; there is: {', '.join(KINDS)}")
    if not kinds or len(set(kinds)) < len(kinds):
        raise ParamsError(f"train_attacker.kinds: must name attackers, each once, got {text!r}")
    return kinds


def train_attacker(
    kind: str,
    speech: Speech,
    params: TrainAttackerParams,
    *,
    training: str,
    seed: int,
    number: int = 1,
    checkpoints: Path | None = None,
    sink: CurveSink | None = None,
) -> TrainedAttacker:
    """Train an attacker on public speech.

    Args:
        kind: One of :data:`KINDS`.
        speech: Speech of public speakers, at least 2.
        params: Sizes, steps and augmentation.
        training: State of that speech, ``original`` or ``anonymized``.
        seed: The run's seed.
        number: Which of several seeds, from 1; the first is the run's own.
        checkpoints: Where to resume from and save to; nothing else may lie there.
        sink: Told each point of the curve, where there is one.
    """
    seed = seed if number == 1 else stream_seed(seed, "attacker seed", number) % 2**63
    if kind == "ecapa":
        from voxveil.attack.attackers.ecapa import EcapaAttacker

        ecapa, result = EcapaAttacker.train(
            speech, params, training=training, seed=seed, checkpoints=checkpoints, sink=sink
        )
        return TrainedAttacker(ecapa, result.curve, result.accuracy)
    if kind == "wavlm_ecapa":
        from voxveil.attack.attackers.wavlm_ecapa import WavLMEcapaAttacker

        attacker, result = WavLMEcapaAttacker.train(
            speech, params, training=training, seed=seed, checkpoints=checkpoints, sink=sink
        )
        return TrainedAttacker(attacker, result.curve, result.accuracy)
    if kind in ("f0_histogram", "phone_histogram"):
        from voxveil.attack.attackers.histograms import F0HistogramAttacker, PhoneHistogramAttacker

        if kind == "f0_histogram":
            return TrainedAttacker(F0HistogramAttacker(speech.speakers, training))
        return TrainedAttacker(PhoneHistogramAttacker.train(speech, params, training=training, seed=seed))
    return _trained_embedding(kind, speech, params, training, seed, checkpoints, sink)


def _trained_embedding(
    kind: str,
    speech: Speech,
    params: TrainAttackerParams,
    training: str,
    seed: int,
    checkpoints: Path | None,
    sink: CurveSink | None,
) -> TrainedAttacker:
    from voxveil.attack.attackers.embedding import FrontEnd, fit_embedding_attacker

    curve: list[dict[str, float]] = []
    accuracy = None
    front: FrontEnd
    if kind == "xvector_plda":
        from voxveil.attack.attackers.xvector import train_xvector

        front, result = train_xvector(speech, params, seed=seed, checkpoints=checkpoints, sink=sink)
        curve, accuracy = result.curve, result.accuracy
    elif kind == "prosody":
        from voxveil.attack.attackers.prosody import Prosody

        front = Prosody()
    else:
        from voxveil.attack.wavlm import WavLM, WavLMStatistics, find_wavlm

        front = WavLMStatistics(WavLM(find_wavlm(params.wavlm)))
    fitted = fit_embedding_attacker(front, speech, training=training, dimensions=params.lda)
    return TrainedAttacker(fitted, curve, accuracy)


def load_attacker(folder: Path) -> Attacker:
    """Read a trained attacker of any kind.

    Raises:
        InputError: The folder holds none, or one of an unknown kind.
    """
    path = Path(folder) / "model.json"
    content = read_json(path)
    kind = content.get("attacker") if isinstance(content, dict) else None
    if kind not in KINDS or not isinstance(content.get("speakers"), list):
        raise InputError(f"{path}: not an attacker, its kind is {kind!r}; kinds: {', '.join(KINDS)}")
    if content.get("training") not in ("original", "anonymized"):
        raise InputError(f"{path}: training must be original or anonymized, got {content.get('training')!r}")
    return _load(str(kind), Path(folder), content)


def _load(kind: str, folder: Path, content: dict[str, Any]) -> Attacker:
    if kind == "ecapa":
        from voxveil.attack.attackers.ecapa import EcapaAttacker

        return EcapaAttacker.load(folder)
    if kind == "wavlm_ecapa":
        from voxveil.attack.attackers.wavlm_ecapa import WavLMEcapaAttacker

        return WavLMEcapaAttacker.load(folder)
    if kind in ("f0_histogram", "phone_histogram"):
        from voxveil.attack.attackers.histograms import F0HistogramAttacker, PhoneHistogramAttacker

        return (
            F0HistogramAttacker.load(folder)
            if kind == "f0_histogram"
            else PhoneHistogramAttacker.load(folder)
        )
    from voxveil.attack.attackers.embedding import load_embedding_attacker

    if kind == "xvector_plda":
        from voxveil.attack.attackers.xvector import XVector

        return load_embedding_attacker(folder, content, XVector.load)
    if kind == "prosody":
        from voxveil.attack.attackers.prosody import Prosody

        return load_embedding_attacker(folder, content, lambda _: Prosody())
    from voxveil.attack.wavlm import WavLMStatistics

    return load_embedding_attacker(folder, content, WavLMStatistics.load)


def attacker_folder(kind: str, number: int = 1) -> str:
    """Return the folder name of a kind's attacker with a seed, from 1."""
    return kind if number == 1 else f"{kind}.seed{number}"


def seeds_of(kind: str, wanted: int) -> Iterable[int]:
    """Return the seeds to train with; a single one for a deterministic attacker."""
    return range(1, (wanted if kind in _SEEDED else 1) + 1)


def find_attackers(folder: Path) -> dict[str, list[Attacker]]:
    """Return the attackers of a folder by kind, each with its seeds in order.

    Raises:
        InputError: There is none, or the first seed of a kind is missing.
    """
    found: dict[str, list[Attacker]] = {}
    for kind in KINDS:
        number = 1
        while (folder / attacker_folder(kind, number) / "model.json").is_file():
            found.setdefault(kind, []).append(load_attacker(folder / attacker_folder(kind, number)))
            number += 1
    if not found:
        raise InputError(f"{folder}: holds no attacker (KIND/model.json); run train_attacker again")
    return found
