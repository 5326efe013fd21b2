"""Bundles: folders that hold everything one system needs to anonymize.

``bundle.json`` (format, system, losses with unit and mechanism, corpus), ``pool.npz``, the
folders ``pitch``, ``content``, ``synthesis`` and ``vocoder`` with ``model.json`` and
``model.safetensors`` each, and ``SHA256SUMS`` (``sha256sum -c`` reads it). Writing and checking
need no torch. The bundle of a system that anonymizes nothing by models (``original``, ``mcadams``) holds
``bundle.json`` and ``SHA256SUMS`` only, that of ``copy_synthesis`` the vocoder too. That of
``words_voice`` holds the folder ``voice``, and names its recognizer by address and digest.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from voxveil import __version__
from voxveil.anonymize.word_source import WordSource
from voxveil.config.model import SystemParams
from voxveil.features.speaker.targets import TargetRule
from voxveil.privacy.invariants import LENGTH
from voxveil.privacy.loss_rule import LossRule
from voxveil.runtime.atomic import read_json, write_bytes, write_json
from voxveil.runtime.checksums import check_sums, write_sums
from voxveil.runtime.errors import IncompleteInputError, InputError

__all__ = ["BUNDLE", "PARTS", "Bundle", "read_bundle", "write_bundle"]

FORMAT = 1
#: Description of a bundle.
BUNDLE = "bundle.json"
#: Model folders of a bundle.
PARTS = ("pitch", "content", "synthesis", "vocoder")
#: The speaker encoder, where the choice of a target asks for the source's voice.
_VOICE = "speaker"
_COPIED = "copy_synthesis"
#: What is said of a system that is not made of extractors and synthesis.
_NOTES = {
    "original": "speech is passed through unprotected",
    "mcadams": "signal processing without any guarantee",
    _COPIED: "speech spoken again from its own spectrum and pitch: nothing is protected",
}
#: Kinds that speak recognized words.
_SPEAKING_WORDS = ("words_voice",)
_FILES = ("model.json", "model.safetensors")


@dataclass(frozen=True)
class Bundle:
    """A checked bundle.

    Attributes:
        folder: Where it lies.
        system: Name of the system.
        kind: As in :class:`SystemParams`.
        pitch_conversion: F0 is moved to the target's statistics.
        target_members: Voices averaged into a target.
        rule: What a release costs.
        corpus: What the models were trained on: name, revision, synthetic, public, dataset.
        target: How a target voice is chosen.
        coefficients: Smallest and largest McAdams coefficient, of kind ``mcadams``.
        words: How words are recognized, of kind ``words_voice``.
    """

    folder: Path
    system: str
    kind: str
    pitch_conversion: bool
    target_members: int
    rule: LossRule
    corpus: Mapping[str, Any]
    target: TargetRule = TargetRule()
    coefficients: tuple[float, float] = (1.0, 1.0)
    words: WordSource | None = None

    def with_words(self, *, recognizer: str = "", length: float | None = None) -> Bundle:
        """Return this bundle of a system of words with settings of one release.

        Args:
            recognizer: Where its recognizer is; empty is the address that the bundle names.
            length: Seconds to whose multiples outputs have the length of recordings; None is the length
                that the words get.

        Raises:
            InputError: The system does not speak words.
        """
        if self.words is None:
            if recognizer or length is not None:
                raise InputError(
                    f"{self.system}: is no system of words; --recognizer and --keep-length do not apply"
                )
            return self
        words = replace(self.words, address=recognizer or self.words.address, length=length)
        return replace(self, words=words, rule=LossRule.of_streams({"words": words.mechanism}))

    @property
    def original(self) -> bool:
        """Speech is passed through unprotected."""
        return self.kind == "original"

    def part(self, name: str) -> Path:
        """Return the folder of one of :data:`PARTS`."""
        return self.folder / name


def write_bundle(
    folder: Path,
    name: str,
    system: SystemParams,
    models: Mapping[str, Path],
    corpus: Mapping[str, Any],
    *,
    sex_public: bool = False,
    words: WordSource | None = None,
) -> None:
    """Write a bundle into an empty folder.

    Args:
        folder: Where to.
        name: Name of the system.
        system: Its composition.
        models: Finished model folders by part, and ``speaker`` for the pool; not read where the
            system has no models.
        corpus: What the models were trained on.
        sex_public: The speakers' sex is declared public.
        words: How words are recognized, of kind ``words_voice``; its voice is ``models["voice"]``.

    Raises:
        InputError: A model folder lacks a file.
    """
    facts: dict[str, Any] = {
        "format": FORMAT,
        "system": name,
        "kind": system.kind,
        "pitch_conversion": system.pitch_conversion,
        "corpus": dict(corpus),
        "version": __version__,
    }
    if words is not None:
        rule = LossRule.of_streams({"words": words.mechanism})
        facts["words"] = words.to_json()
        parts: list[str] = []
        for path in sorted(models["voice"].rglob("*")):
            if path.is_file():
                _copy(path, folder / "voice" / path.relative_to(models["voice"]))
    elif not system.trained:
        rule = LossRule.nothing_promised()
        facts["note"] = _NOTES[system.kind]
        if system.kind == "mcadams":
            facts["coefficients"] = [system.mcadams_low, system.mcadams_high]
        parts = ["vocoder"] if system.kind == _COPIED else []
    else:
        target = TargetRule(system.target, system.target_level, system.target_sex, sex_public)
        rule = replace(LossRule.read(models["pitch"], models["content"]), target=target.tells)
        facts["target"] = asdict(target)
        parts = [*PARTS, *([_VOICE] if target.choice == "farthest" else [])]
        _copy(models["speaker"] / "pool.npz", folder / "pool.npz")
        facts["target_members"] = _target_members(models["speaker"] / "model.json")
    for part in parts:
        for file in _FILES:
            _copy(models[part] / file, folder / part / file)
    if parts:
        facts["parts"] = {part: _sizes(folder / part) for part in parts}
    facts["losses"] = rule.to_json()
    count = "" if words is not None else ", K = ceil((samples // 160 + 1) / frames per vector)"
    facts["utterance"] = {"rule": f"{rule.formula}{count}"}
    write_json(folder / BUNDLE, facts)
    write_sums(folder)


def read_bundle(folder: Path) -> Bundle:
    """Check a bundle and return its description.

    Raises:
        InputError: Not a bundle of this format.
        IncompleteInputError: A file is missing or changed; the first is named.
    """
    folder = Path(folder)
    check_sums(folder, BUNDLE, "model bundle", "the bundle stage makes one")
    path = folder / BUNDLE
    facts = read_json(path)
    if not isinstance(facts, dict) or facts.get("format") != FORMAT:
        got = facts.get("format") if isinstance(facts, dict) else type(facts).__name__
        raise InputError(f"{path}: must be a bundle of format {FORMAT}, got {got!r}")
    try:
        kind = str(facts["kind"])
        bare = kind in _NOTES or kind in _SPEAKING_WORDS
        words = WordSource.from_json(facts["words"], path) if kind in _SPEAKING_WORDS else None
        target = TargetRule() if bare else TargetRule(**facts.get("target", {}))
        rule = LossRule.nothing_promised() if bare else LossRule.read(folder / "pitch", folder / "content")
        rule = replace(rule, target=target.tells)
        if words is not None:
            rule = LossRule.of_streams({"words": words.mechanism})
        # A bundle that was written before losses had invariants assumes equal sample count.
        losses = {name: {"invariants": [LENGTH], **loss} for name, loss in facts["losses"].items()}
        if losses != rule.to_json():
            raise InputError(f"{path}: its losses are not those of its models")
        return Bundle(
            folder=folder,
            system=str(facts["system"]),
            kind=kind,
            pitch_conversion=bool(facts["pitch_conversion"]),
            target_members=1 if bare else int(facts["target_members"]),
            rule=rule,
            corpus=dict(facts["corpus"]),
            target=target,
            coefficients=_coefficients(facts) if kind == "mcadams" else (1.0, 1.0),
            words=words,
        )
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise InputError(f"{path}: not a valid description ({type(error).__name__}: {error})") from None


def _coefficients(facts: Mapping[str, Any]) -> tuple[float, float]:
    low, high = (float(value) for value in facts["coefficients"])
    if not 0.0 < low <= high:
        raise ValueError(f"coefficients must be 0 < low <= high, got {low:g} and {high:g}")
    return low, high


def _copy(source: Path, destination: Path) -> None:
    if not source.is_file():
        raise IncompleteInputError(f"{source}: missing; run the stage that makes it again")
    write_bytes(destination, source.read_bytes())


def _target_members(path: Path) -> int:
    content = read_json(path)
    members = content.get("target_members") if isinstance(content, dict) else None
    if not isinstance(members, int) or members < 1:
        raise InputError(f"{path}: target_members must be at least 1, got {members!r}")
    return members


def _sizes(folder: Path) -> dict[str, Any]:
    content = read_json(folder / "model.json")
    weights = (folder / "model.safetensors").stat().st_size
    return {"kind": content.get("kind", ""), "sizes": content.get("sizes", {}), "bytes": weights}
