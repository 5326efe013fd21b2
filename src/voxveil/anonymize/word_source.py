"""How a system of words recognizes them: recognizer, digest of its weights, settings, and the mechanism.

Everything that the words depend on beside the recording stands in :func:`recognition_settings`; its digest
names the invariant of the release. The recognizers are in :mod:`voxveil.anonymize.word_recognition`.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import Any

from voxveil.audio.sphinx import pocketsphinx_module
from voxveil.pretrained.folder import PretrainedModel, locate_pretrained
from voxveil.privacy import RecognizedWords, recognition_digest
from voxveil.runtime.done import file_sha256
from voxveil.runtime.errors import InputError, optional_module

__all__ = [
    "POCKETSPHINX",
    "SEGMENTATION",
    "SPOKEN",
    "WHISPER_DECODING",
    "WordSource",
    "recognition_settings",
    "sphinx_weights",
]

#: Name of the recognizer that comes with voxveil's extra ``align``.
POCKETSPHINX = "pocketsphinx"
_WHISPER = "faster_whisper"
#: Silero's voice activity detector: thresholds of its documentation, times in ms, and the longest piece in
#: seconds, which with a second of what lies around it stays below the 30 s that Whisper reads at once.
SEGMENTATION: dict[str, Any] = {
    "detector": "silero v6",
    "threshold": 0.5,
    "min_speech_ms": 250,
    "min_silence_ms": 500,
    "pad_ms": 300,
    "longest_s": 27.5,
    "context_s": 1.0,
}
WHISPER_DECODING: dict[str, Any] = {
    "beam_size": 5,
    "temperature": 0.0,
    "condition_on_previous_text": False,
    "without_timestamps": False,
    "compute_type": "int8",
    "suppressed_characters": "0123456789$%&+=@#\u00a3\u20ac\u00b0",
    "no_speech_above": 0.6,
    "compression_above": 2.4,
}
SPHINX_DECODING: dict[str, Any] = {"model": "en-us of the package", "settings": "defaults of the package"}
#: Abbreviations that a recognizer writes, by what is spoken.
SPOKEN = {"mr": "mister", "mrs": "missus", "dr": "doctor", "st": "saint"}


@dataclass(frozen=True)
class WordSource:
    """Where the words of a system come from; its weights may lie outside the bundle.

    Attributes:
        architecture: ``pocketsphinx``, or that of the imported recognizer.
        address: Folder or ``s3://`` address of the imported recognizer; empty for PocketSphinx.
        origin: Where its weights came from, for the message when they are missing.
        language: Code of the language.
        settings: What the words depend on beside the recording
            (:func:`recognition_settings`).
        length: Of :class:`RecognizedWords`.
    """

    architecture: str
    address: str
    origin: str
    language: str
    settings: Mapping[str, Any]
    length: float | None = None

    @staticmethod
    def of(address: str, language: str, parameter: str) -> WordSource:
        """Return the source of an address: ``pocketsphinx``, or that of an imported recognizer.

        Args:
            address: As in the parameters of a system.
            language: Code of the language.
            parameter: Dotted name of the parameter, for errors.

        Raises:
            InputError: There is no such recognizer.
        """
        if address == POCKETSPHINX:
            settings = recognition_settings(POCKETSPHINX, sphinx_weights(), language)
            return WordSource(POCKETSPHINX, "", "", language, settings)
        model = locate_pretrained(address, "recognizer", parameter)
        settings = recognition_settings(model.architecture, model.digest, language)
        return WordSource(model.architecture, address, model.source, language, settings)

    @property
    def digest(self) -> str:
        """Digest of the settings, which names the invariant."""
        return recognition_digest(**self.settings)

    @property
    def mechanism(self) -> RecognizedWords:
        """The mechanism that releases the words."""
        return RecognizedWords(self.digest, length=self.length)

    def model(self) -> PretrainedModel | None:
        """Return the checked folder of the recognizer, None for PocketSphinx.

        Raises:
            InputError: It is missing, or not the one that the settings describe; nothing was released.
        """
        model = None if self.architecture == POCKETSPHINX else self._located()
        weights = sphinx_weights() if model is None else model.digest
        found = recognition_settings(self.architecture, weights, self.language)
        for name, wanted in self.settings.items():
            if found.get(name) != wanted:
                raise InputError(
                    f"the recognizer of this system has {name} {found.get(name)!r}, its bundle was written"
                    f" for {wanted!r}: other words would have the same digest; run stage bundle again"
                )
        return model

    def to_json(self) -> dict[str, Any]:
        """Return what a bundle records."""
        return {
            "architecture": self.architecture,
            "address": self.address,
            "origin": self.origin,
            "language": self.language,
            "settings": dict(self.settings),
            "digest": self.digest,
        }

    @staticmethod
    def from_json(content: Mapping[str, Any], path: Path) -> WordSource:
        """Read the output of :meth:`to_json`.

        Args:
            content: The object.
            path: File that holds it, for errors.

        Raises:
            InputError: The digest is not that of the settings.
        """
        source = WordSource(
            architecture=str(content["architecture"]),
            address=str(content["address"]),
            origin=str(content["origin"]),
            language=str(content["language"]),
            settings=dict(content["settings"]),
        )
        if source.digest != content["digest"]:
            raise InputError(f"{path}: words.digest is not that of its settings")
        return source

    def _located(self) -> PretrainedModel:
        wanted = str(self.settings["weights"])
        hint = (
            f"import {self.origin} by 'voxveil model import SOURCE --architecture {self.architecture}"
            " --out FOLDER' and name it with --recognizer FOLDER"
        )
        try:
            model = locate_pretrained(self.address, "recognizer", "recognizer")
        except InputError as error:
            raise InputError(f"{error}; {hint}") from None
        if model.digest != wanted:
            raise InputError(
                f"recognizer {self.address}: its digest is {model.digest[:12]}, the bundle was written for"
                f" {wanted[:12]}; {hint}"
            )
        return model


def recognition_settings(architecture: str, weights: str, language: str) -> dict[str, Any]:
    """Return everything that recognized words depend on beside the recording.

    Args:
        architecture: ``pocketsphinx``, or that of an imported recognizer.
        weights: SHA-256 that identifies its weights.
        language: Code of the language, e.g. ``en``.

    Returns:
        The arguments of :func:`voxveil.privacy.words.recognition_digest`.

    Raises:
        InputError: A recognizer that cannot be used here, or no language.
        MissingExtraError: A package of the recognizer is not installed.
    """
    if not language:
        raise InputError("the language must be given, e.g. en: one that the audio chooses would tell of it")
    if architecture == POCKETSPHINX:
        if language != "en":
            raise InputError(
                f"language {language!r}: PocketSphinx recognizes en only; import a Whisper model"
            )
        packages, decoding = ("pocketsphinx", "faster-whisper"), SPHINX_DECODING
    elif architecture == _WHISPER:
        packages, decoding = ("faster-whisper", "ctranslate2"), WHISPER_DECODING
    else:
        raise InputError(f"recognizer {architecture!r}: must be {POCKETSPHINX} or of {_WHISPER}")
    return {
        "recognizer": " ".join((architecture, *(f"{name}=={_version(name)}" for name in packages))),
        "weights": weights,
        "segmentation": dict(SEGMENTATION),
        "decoding": {**decoding, "language": language},
        "normalization": {"spoken": dict(SPOKEN) if language == "en" else {}},
    }


@cache
def sphinx_weights() -> str:
    """Return the SHA-256 over the digests of all files of PocketSphinx's English model."""
    folder = Path(pocketsphinx_module().get_model_path("en-us"))
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    lines = [f"{file_sha256(path)}  {path.relative_to(folder).as_posix()}\n" for path in files]
    return hashlib.sha256("".join(lines).encode()).hexdigest()


def _version(package: str) -> str:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        extra = "align" if package == POCKETSPHINX else "judges"
        optional_module(package.replace("-", "_"), extra, package)
        raise InputError(f"{package}: is installed without its version") from None
