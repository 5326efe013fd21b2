"""How a system of words recognizes them: recognizer, digest of its weights, settings, and the mechanism."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from voxveil.anonymize.word_recognition import (
    POCKETSPHINX,
    SegmentRecognizer,
    load_recognizer,
    recognition_settings,
    sphinx_weights,
)
from voxveil.privacy import RecognizedWords, recognition_digest
from voxveil.runtime.errors import InputError

if TYPE_CHECKING:
    from voxveil.pretrained.folder import PretrainedModel

__all__ = ["WordSource"]


@dataclass(frozen=True)
class WordSource:
    """Where the words of a system come from; its weights may lie outside the bundle.

    Attributes:
        architecture: ``pocketsphinx``, or that of the imported recognizer.
        address: Folder or ``s3://`` address of the imported recognizer; empty for PocketSphinx.
        origin: Where its weights came from, for the message when they are missing.
        language: Code of the language.
        settings: What the words depend on beside the recording
            (:func:`voxveil.anonymize.word_recognition.recognition_settings`).
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
        from voxveil.pretrained.folder import locate_pretrained

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

    def recognizer(self) -> SegmentRecognizer:
        """Return the loaded recognizer.

        Raises:
            InputError: It is missing, or not the one that the settings describe; nothing was released.
        """
        model = None if self.architecture == POCKETSPHINX else self._model()
        weights = sphinx_weights() if model is None else model.digest
        found = recognition_settings(self.architecture, weights, self.language)
        for name, wanted in self.settings.items():
            if found.get(name) != wanted:
                raise InputError(
                    f"the recognizer of this system has {name} {found.get(name)!r}, its bundle was written"
                    f" for {wanted!r}: other words would have the same digest; run stage bundle again"
                )
        return load_recognizer(model, self.language)

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

    def _model(self) -> PretrainedModel:
        from voxveil.pretrained.folder import locate_pretrained

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
