"""Table of the kinds of attackers: train one, load one, list those of a folder.

An attacker lies in a folder of its own whose ``model.json`` says which kind it is. Further seeds of a
kind lie beside it (``ecapa``, ``ecapa.seed2``); the strongest counts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from voxveil.attack.attackers.ecapa import EcapaAttacker
from voxveil.attack.attackers.embedding import (
    FrontEnd,
    XVector,
    load_embedding_attacker,
    train_embedding_attacker,
)
from voxveil.attack.attackers.histograms import F0HistogramAttacker, PhoneHistogramAttacker
from voxveil.attack.attackers.interface import Attacker, TrainedAttacker, TrainingSetup
from voxveil.attack.attackers.pretrained import FineTunedAttacker, PretrainedAttacker, PretrainedFrontEnd
from voxveil.attack.attackers.prosody import Prosody
from voxveil.attack.imported import WavLMStatistics
from voxveil.config.fields import listed
from voxveil.corpus.split import Speech
from voxveil.runtime.atomic import read_json
from voxveil.runtime.errors import InputError, ParamsError
from voxveil.runtime.seeding import stream_seed

__all__ = [
    "KINDS",
    "Kind",
    "attacker_folder",
    "find_attackers",
    "listed_kinds",
    "load_attacker",
    "seeds_of",
    "train_attacker",
]


@dataclass(frozen=True)
class Kind:
    """One kind of attacker.

    Attributes:
        about: What it is, in one line.
        train: Trains one on public speech.
        load: Reads one from its folder, given its checked ``model.json``.
        seeded: Whether another seed gives another attacker.
    """

    about: str
    train: Callable[[Speech, TrainingSetup], TrainedAttacker]
    load: Callable[[Path, dict[str, Any]], Attacker]
    seeded: bool = False


def _plda(about: str, front_end: type[FrontEnd], *, seeded: bool = False) -> Kind:
    """Return the kind that compares the vectors of a front end by LDA, length normalization and PLDA."""
    train, load = partial(train_embedding_attacker, front_end), partial(load_embedding_attacker, front_end)
    return Kind(f"{about}, LDA, length normalization, PLDA", train, load, seeded)


#: Every kind of attacker, by its name in parameters, paths and tables.
KINDS: Mapping[str, Kind] = {
    "ecapa": Kind("ECAPA-TDNN, cosine", EcapaAttacker.train, EcapaAttacker.load, seeded=True),
    "xvector_plda": _plda("x-vector", XVector, seeded=True),
    "f0_histogram": Kind(
        "F0 histogram (pYIN), Euclidean distance", F0HistogramAttacker.train, F0HistogramAttacker.load
    ),
    "phone_histogram": Kind(
        "histogram of a codebook of sounds, Euclidean distance",
        PhoneHistogramAttacker.train,
        PhoneHistogramAttacker.load,
        seeded=True,
    ),
    "prosody": _plda("F0, energy and rhythm", Prosody),
    "wavlm": _plda("WavLM features (mean, deviation)", WavLMStatistics),
    "wavlm_ecapa": Kind(
        "WavLM features, ECAPA-TDNN, cosine",
        EcapaAttacker.train_on_wavlm,
        EcapaAttacker.load,
        seeded=True,
    ),
    "pretrained": Kind(
        "pretrained speaker network, cosine", PretrainedAttacker.train, PretrainedAttacker.load
    ),
    "pretrained_lda": _plda("pretrained speaker network", PretrainedFrontEnd),
    "pretrained_finetuned": Kind(
        "pretrained speaker network, trained further, cosine",
        FineTunedAttacker.train,
        FineTunedAttacker.load,
        seeded=True,
    ),
}


def listed_kinds(text: str) -> tuple[str, ...]:
    """Return the kinds that ``train_attacker.kinds`` lists.

    Raises:
        ParamsError: There is none, one is unknown or stands twice.
    """
    kinds = listed(text)
    for kind in kinds:
        if kind not in KINDS:
            known = "; ".join(f"{name} ({allowed.about})" for name, allowed in KINDS.items())
            raise ParamsError(f"train_attacker.kinds: no attacker {kind!r}; allowed: {known}")
    if not kinds or len(set(kinds)) < len(kinds):
        raise ParamsError(
            f"train_attacker.kinds: must name attackers, each once, got {text!r}; allowed: {', '.join(KINDS)}"
        )
    return kinds


def train_attacker(kind: str, speech: Speech, setup: TrainingSetup, number: int = 1) -> TrainedAttacker:
    """Train an attacker on public speech.

    Args:
        kind: One of :data:`KINDS`.
        speech: Speech of public speakers, at least 2.
        setup: How to train it, with the run's seed.
        number: Number of the seed, from 1; the first is the run's own.
    """
    if number > 1:
        setup = replace(setup, seed=stream_seed(setup.seed, "attacker seed", number) % 2**63)
    return KINDS[kind].train(speech, setup)


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
    return KINDS[str(kind)].load(Path(folder), content)


def attacker_folder(kind: str, number: int = 1) -> str:
    """Return the folder name of a kind's attacker with a seed, from 1."""
    return kind if number == 1 else f"{kind}.seed{number}"


def seeds_of(kind: str, wanted: int) -> Iterable[int]:
    """Return the seeds to train with; a single one for a deterministic attacker."""
    return range(1, (wanted if KINDS[kind].seeded else 1) + 1)


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
        raise InputError(
            f"{folder}: holds no attacker (KIND/model.json, KIND one of {', '.join(KINDS)});"
            " run train_attacker again"
        )
    return found
