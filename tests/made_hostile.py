"""Hostile recordings made on the spot: what each is, and what must become of it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import soundfile

from given_files import DATA, given_folder
from made_corpora import vowel
from made_voices import voice as spoken

__all__ = ["SILENT", "Hostile", "given_hostile", "whispered", "write_hostile"]

#: What ``corpus check`` and ``prepare`` say of silence; ``anonymize`` takes it.
SILENT = "all its samples are equal in 16 bit (silence)"

#: The files of the test data's folder ``edge``: what is wrong with those that nobody can use.
GIVEN_REFUSED = {
    "corrupt-frame.flac": "not readable as audio (flac decoder lost sync)",
    "empty.flac": "it has 0 samples",
    "text-renamed.flac": "not readable as audio (Format not recognised)",
    "truncated.flac": "not readable as audio (flac decoder lost sync)",
    "zero-bytes.flac": "the file has 0 bytes",
}
#: And what is done to, or seen in, the others.
GIVEN_FLAGS = {
    "clipped.flac": "clipped dc_offset",
    "dc-offset.flac": "dc_offset",
    "long-60s-quiet.flac": "quiet",
    "noise-2s.flac": "",
    "rate-44k1-stereo.flac": "downmixed resampled",
    "rate-8k.flac": "band_limited resampled",
    "short-20ms.flac": "short",
    "silence-2s.flac": "silent",
    "whispered.flac": "",
}


@dataclass(frozen=True)
class Hostile:
    """A folder of hostile recordings.

    Attributes:
        folder: Where they are.
        refused: Reason by name, of those that nobody can use.
        flags: Flags by name, of all others.
        unvoiced: Names of those without a voiced frame.
        whispered: Name of whispered speech; fewer than a frame in twenty may look voiced.
    """

    folder: Path
    refused: dict[str, str]
    flags: dict[str, str]
    unvoiced: frozenset[str]
    whispered: str

    @property
    def names(self) -> list[str]:
        """All file names, sorted."""
        return sorted([*self.refused, *self.flags])

    @property
    def silent(self) -> list[str]:
        """Names of silent recordings."""
        return [name for name, flags in self.flags.items() if "silent" in flags.split()]


def given_hostile() -> Hostile:
    """Return the test data's folder ``edge``, which must be there."""
    folder = given_folder(DATA, "edge")
    assert folder is not None
    unvoiced = frozenset({"noise-2s.flac", "short-20ms.flac", "silence-2s.flac"})
    return Hostile(folder, GIVEN_REFUSED, GIVEN_FLAGS, unvoiced, "whispered.flac")


def whispered(audio: np.ndarray) -> np.ndarray:
    """Return speech at 16 kHz as it sounds without a voice: its spectral envelope on white noise.

    Frames of 32 ms, half of them overlapping; the envelope is what the first 30 cepstral coefficients
    (1.9 ms) hold, so that no harmonic of a voice below 530 Hz is left.
    """
    size, hop, order = 512, 256, 30
    window = np.sqrt(np.hanning(size + 1)[:-1])
    noise = np.random.default_rng(6).standard_normal(len(audio))
    out = np.zeros(len(audio))
    for start in range(0, len(audio) - size + 1, hop):
        piece = slice(start, start + size)
        cepstrum = np.fft.irfft(np.log(np.abs(np.fft.rfft(window * audio[piece])) + 1e-6))
        cepstrum[order + 1 : size - order] = 0
        envelope = np.exp(np.fft.rfft(cepstrum).real)
        out[piece] += window * np.fft.irfft(envelope * np.fft.rfft(window * noise[piece]), size)
    return 0.3 * out / np.abs(out).max()


def write_hostile(folder: Path) -> Hostile:
    """Write one recording of every kind into a new folder."""
    folder.mkdir()
    rng = np.random.default_rng(5)
    voice, noise = vowel(12_000), rng.normal(0, 0.02, 16_000)
    whole = folder / "whole.flac"
    soundfile.write(whole, vowel(32_000), 16_000)
    flac = whole.read_bytes()
    whole.unlink()
    middle = len(flac) // 2
    broken = {
        "corrupt.flac": flac[:middle] + rng.bytes(64) + flac[middle + 64 :],
        "cut.flac": flac[:middle],
        # A header of 16 kHz, mono, 16 bit, and no frame behind it.
        "no-frames.flac": b"fLaC\x80\0\0\x22\x10\0\x10\0" + bytes(6) + b"\x03\xe8\0\xf0" + bytes(20),
        "nothing.flac": b"",
        "words.flac": b"This file holds words, no audio.\n",
        "talk.m4a": b"\0\0\0\x18ftypM4A " + bytes(64),
    }
    for name, data in broken.items():
        (folder / name).write_bytes(data)
    spoilt = voice.copy()
    spoilt[700] = np.nan
    bursts = np.zeros(15 * 16_000)
    for start in (20_000, 110_000, 190_000):
        bursts[start : start + 12_000] = 1e-3 * voice
    both = np.stack([voice, 0.5 * voice], axis=1)
    audio = {
        "clip.wav": (np.clip(30 * voice, -1, 1), 16_000, "PCM_16"),
        "high-rate-stereo.flac": (both, 44_100, "PCM_16"),
        "huge.wav": (voice * 1e30, 16_000, "FLOAT"),
        "long-quiet.flac": (bursts, 16_000, "PCM_16"),
        "low-rate.wav": (vowel(12_000, 240.0), 8_000, "PCM_16"),
        "mute.flac": (np.zeros(16_000), 16_000, "PCM_16"),
        "nan.wav": (spoilt, 16_000, "FLOAT"),
        "no-samples.wav": (np.zeros(0), 16_000, "PCM_16"),
        "noise.flac": (noise, 16_000, "PCM_16"),
        "offset.wav": (voice + 0.25, 16_000, "FLOAT"),
        "one-sample.wav": (np.array([0.5]), 16_000, "PCM_16"),
        "quiet.wav": (voice * 1e-3, 16_000, "FLOAT"),
        "short.flac": (noise[:320], 16_000, "PCM_16"),
        "telegraph.wav": (voice, 4_000, "PCM_16"),
        "whisper.flac": (whispered(spoken(1, 1, 41_600)), 16_000, "PCM_16"),
    }
    for name, (samples, rate, encoding) in audio.items():
        soundfile.write(folder / name, samples, rate, subtype=encoding)
    refused = {
        "corrupt.flac": "not readable as audio (flac decoder lost sync)",
        "cut.flac": "not readable as audio (flac decoder lost sync)",
        "huge.wav": "its peak is ",
        "nan.wav": "it holds samples that are NaN or infinite",
        "no-frames.flac": "it has 0 samples",
        "no-samples.wav": "it has 0 samples",
        "nothing.flac": "the file has 0 bytes",
        "talk.m4a": ".m4a is not read; convert it to one of .flac ",
        "telegraph.wav": "its rate is 4000 Hz; at least 8000 Hz is needed",
        "words.flac": "not readable as audio (Format not recognised)",
    }
    flags = {
        "clip.wav": "clipped dc_offset",
        "high-rate-stereo.flac": "downmixed resampled",
        "long-quiet.flac": "quiet",
        "low-rate.wav": "band_limited resampled",
        "mute.flac": "silent",
        "noise.flac": "",
        "offset.wav": "dc_offset",
        "one-sample.wav": "dc_offset short silent",
        "quiet.wav": "quiet",
        "short.flac": "short",
        "whisper.flac": "",
    }
    unvoiced = frozenset({"mute.flac", "noise.flac", "one-sample.wav", "short.flac", "whisper.flac"})
    return Hostile(folder, refused, flags, unvoiced, "whisper.flac")
