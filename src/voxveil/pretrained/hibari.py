"""Text-to-speech by hibari: English, one voice of about 8 MB in ONNX, distilled from Kokoro-82M.

The network maps phones to durations, F0 and spectra at 24 kHz. The package hibari-tts brings the code around
it: pronunciations (a lexicon, and a network for words outside it) and the filter that turns spectra into
samples. Its noise has one fixed seed, so the same words give the same samples.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from voxveil.pretrained.folder import PretrainedModel
from voxveil.pretrained.importing import single_file
from voxveil.pretrained.kinds import SpokenWords
from voxveil.pretrained.onnx import open_session
from voxveil.runtime.atomic import write_bytes
from voxveil.runtime.errors import InputError, one_line, optional_module

__all__ = ["HibariVoice", "convert", "load", "phrases"]

_PACKAGE = "hibari-tts"
_EXTRA = "voices"
_WEIGHTS = "model.onnx"
#: Tensor of the network with the duration of each phone, in units of two frames of 12.5 ms, before the rate
#: of speech divides it; the network then rounds it to whole units, at least one.
_DURATIONS = "/Sub_output_0"
#: Samples at 16 kHz of such a unit.
_UNIT = 400
#: Output of a recognizer without words, and the pause between phrases, in samples at 16 kHz.
_EMPTY, _PAUSE = 16_000, 3_200
#: Most words and most phones of a phrase, which the network speaks at once.
_MOST_WORDS, _MOST_PHONES = 20, 400
#: Words that a phrase may begin with; it breaks before one of them where it can.
_JOINTS = frozenset(
    {
        *("and", "but", "or", "nor", "so", "yet", "for", "because", "although", "though", "while", "when"),
        *("where", "which", "who", "whose", "that", "if", "as", "than", "then", "until", "unless", "since"),
        *("after", "before", "with", "without", "from", "into", "upon"),
    }
)
#: Slowest and fastest rate of speech that the network is asked for.
_SLOWEST, _FASTEST = 0.25, 8.0


@dataclass(frozen=True)
class _Phrase:
    """Phone numbers of one phrase, and of each of its words the first and last (exclusive) number."""

    phones: NDArray[np.int64]
    spans: tuple[tuple[int, int], ...]


class HibariVoice:
    """A loaded voice; speech depends on the words alone.

    Args:
        model: The checked folder.
        threads: CPU threads; one gives the same bits on every run.
    """

    def __init__(self, model: PretrainedModel, threads: int = 1) -> None:
        hibari = optional_module("hibari.tts", _EXTRA, _PACKAGE)
        found, wanted = metadata.version(_PACKAGE), str(model.settings.get("package", ""))
        if found != wanted:
            raise InputError(f"{model.folder}: was imported with {_PACKAGE} {wanted}, installed is {found}")
        try:
            self._speaker = hibari.Hibari(model=str(model.folder / _WEIGHTS), threads=threads)
            self._g2p = self._speaker.g2p
        except Exception as error:  # ONNX Runtime's own errors share no base class
            raise InputError(f"{model.folder}: not a voice of hibari ({one_line(error)[:200]})") from None
        self._session = open_session(model.folder / _WEIGHTS, threads)
        self._synthesize = optional_module("hibari.dsp", _EXTRA, _PACKAGE).synth
        self.model = model

    def speak(self, words: Sequence[str], samples: int | None = None) -> SpokenWords:
        """Speak words; none give silence of one second.

        A sequence of words has no punctuation, so phrases of up to 20 words are cut before a conjunction
        where there is one, with a pause between them. A word that it cannot pronounce is left out.

        Args:
            words: Lower-case words.
            samples: Length to speak them in; None for the length that they get. The rate of speech is changed
                for all of them alike, at the slowest to a quarter; what is then left is pauses.

        Returns:
            Speech at 16 kHz, with the times of the words.
        """
        if samples is not None and samples < 1:
            raise InputError(f"speech must have at least 1 sample, got {samples}")
        spoken = [phrase for part in phrases(words) for phrase in self._phrases(part)]
        if not any(len(phrase.phones) > 2 for phrase in spoken):
            silence = np.zeros(_EMPTY if samples is None else samples, np.float32)
            return SpokenWords(silence, tuple(words), np.zeros((len(words), 2), np.int64))
        speed, pause = (1.0, _PAUSE) if samples is None else self._rate(spoken, samples)
        pieces: list[NDArray[np.float32]] = []
        times: list[tuple[int, int]] = []
        position = 0
        for number, phrase in enumerate(spoken):
            audio, ends = self._audio(phrase, speed)
            begins = np.concatenate([[0], ends[:-1]]) if len(ends) else ends
            for first, last in phrase.spans:
                if last > first:
                    times.append((position + int(begins[first]), position + int(ends[last - 1])))
                else:
                    # A word without phones takes no time, behind the word before.
                    times.append((times[-1][1],) * 2 if times else (position, position))
            gap = pause if samples is not None or number < len(spoken) - 1 else 0
            pieces += [audio, np.zeros(gap, np.float32)]
            position += len(audio) + gap
        speech, spans = np.concatenate(pieces), np.array(times, np.int64).reshape(-1, 2)
        if samples is not None and len(speech) != samples:
            speech, spans = _fitted(speech, spans, samples)
        return SpokenWords(speech, tuple(words), spans)

    def _phrases(self, words: Sequence[str]) -> Iterator[_Phrase]:
        """Yield phone numbers of a phrase, in pieces where it is too long for the network."""
        known = self._speaker.vocab
        codes = [[known[char] for char in phones if char in known] for phones in self._pronounced(words)]
        blank, stop = known[" "], known["."]
        numbers: list[int] = [0]
        spans: list[tuple[int, int]] = []
        for word in codes:
            # No word is longer than a phrase may be.
            cut = word[: _MOST_PHONES - 4]
            if len(numbers) + len(cut) + 3 > _MOST_PHONES:
                yield _Phrase(np.array([*numbers, stop, 0], np.int64), tuple(spans))
                numbers, spans = [0], []
            if cut and len(numbers) > 1:
                numbers.append(blank)
            spans.append((len(numbers), len(numbers) + len(cut)))
            numbers += cut
        ending = [stop, 0] if len(numbers) > 1 else [0]
        yield _Phrase(np.array([*numbers, *ending], np.int64), tuple(spans))

    def _pronounced(self, words: Sequence[str]) -> list[str]:
        """Return the phones of each word, chosen in the context of the others."""
        found = self._grouped(" ".join(words))
        if len(found) != len(words):
            # The tokenizer joined words: each alone then, which loses only what depends on the next one.
            found = ["".join(self._grouped(word)) for word in words]
        return found

    def _grouped(self, text: str) -> list[str]:
        tokens = self._g2p.phonemize_tokens(self._g2p.tokenize(text))
        groups, ended = [""], False
        for token in tokens:
            if ended:
                groups.append("")
            groups[-1] += token.phonemes or ""
            ended = bool(token.whitespace)
        return groups

    def _audio(self, phrase: _Phrase, speed: float) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
        """Return the speech of a phrase and the end of each of its phones, in samples."""
        import soxr

        if len(phrase.phones) < 3:
            return np.zeros(0, np.float32), np.zeros(0, np.int64)
        *spectra, durations = self._run(phrase, speed)
        wave = self._synthesize(*(part[0] for part in spectra), np.random.default_rng(0))
        ends = np.cumsum(_units(durations, speed)) * _UNIT
        if ends[-1] * 3 != len(wave) * 2:
            raise InputError(f"{self.model.folder}: its durations do not add up to its speech")
        audio = np.asarray(soxr.resample(np.asarray(wave, np.float64), 24_000, 16_000, quality="HQ"))
        return audio[: int(ends[-1])].astype(np.float32), ends

    def _rate(self, spoken: Sequence[_Phrase], samples: int) -> tuple[float, int]:
        """Return the slowest rate of speech at which the phrases fit, and the pause after each of them."""
        durations = [self._run(phrase, 1.0)[-1] for phrase in spoken if len(phrase.phones) > 2]

        def length(speed: float) -> int:
            return sum(int(_units(found, speed).sum()) for found in durations) * _UNIT

        slow, fast = _SLOWEST, _FASTEST
        if length(slow) <= samples:
            return slow, (samples - length(slow)) // len(spoken)
        # The length falls as the rate grows.
        for _ in range(20):
            middle = float(np.sqrt(slow * fast))
            slow, fast = (slow, middle) if length(middle) <= samples else (middle, fast)
        return fast, max(0, samples - length(fast)) // len(spoken)

    def _run(self, phrase: _Phrase, speed: float) -> Sequence[NDArray[Any]]:
        inputs = {"ids": phrase.phones[None], "speed": np.array([speed], np.float32)}
        found: Sequence[NDArray[Any]] = self._session.run(None, inputs)
        return found


def phrases(words: Sequence[str]) -> list[Sequence[str]]:
    """Return the words in phrases of at most 20, cut before a conjunction where there is one."""
    found: list[Sequence[str]] = []
    start = 0
    while len(words) - start > _MOST_WORDS:
        joints = [i for i in range(start + _MOST_WORDS // 2, start + _MOST_WORDS + 1) if words[i] in _JOINTS]
        stop = joints[-1] if joints else start + _MOST_WORDS
        found.append(words[start:stop])
        start = stop
    return [*found, words[start:]]


def convert(files: Mapping[str, Path], folder: Path, name: str) -> dict[str, Any]:
    """Write the network with the durations of its phones as one more output, and return the settings."""
    del name
    network = single_file({file: path for file, path in files.items() if file.startswith("hibari")})
    write_bytes(folder / _WEIGHTS, network.read_bytes() + _declared_output(_DURATIONS))
    try:
        package = metadata.version(_PACKAGE)
    except metadata.PackageNotFoundError:
        raise InputError(
            f"{network}: {_PACKAGE} must be installed, which brings the code around it"
        ) from None
    return {"package": package, "language": "en"}


def load(model: PretrainedModel) -> HibariVoice:
    """Return the loaded voice."""
    return HibariVoice(model)


def _units(durations: NDArray[Any], speed: float) -> NDArray[np.int64]:
    """Return durations in whole units as the network rounds them, from what it found before the rate."""
    found = np.asarray(durations, np.float32).reshape(-1) / np.float32(speed)
    return np.maximum(np.round(found), 1.0).astype(np.int64)


def _fitted(
    speech: NDArray[np.float32], spans: NDArray[np.int64], samples: int
) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
    """Return speech of exactly ``samples`` samples: silence behind it, or played faster."""
    if len(speech) <= samples:
        return np.pad(speech, (0, samples - len(speech))), spans
    import soxr

    played = np.asarray(soxr.resample(speech.astype(np.float64), len(speech), samples, quality="HQ"))
    fitted = np.pad(played[:samples], (0, max(0, samples - len(played)))).astype(np.float32)
    return fitted, np.minimum(spans * samples // len(speech), samples)


def _declared_output(tensor: str) -> bytes:
    """Return what, behind the bytes of an ONNX network, declares a tensor of 32-bit floats as an output.

    ONNX is a protocol buffer, and a message that occurs twice is read as one, with its lists joined. This is
    a model whose graph (field 7) holds nothing but one output (field 12) with a name (1) and a type (2).
    """

    def field(number: int, content: bytes) -> bytes:
        return bytes([number << 3 | 2, len(content)]) + content

    floats = field(2, field(1, bytes([1 << 3, 1])))
    return field(7, field(12, field(1, tensor.encode()) + floats))
