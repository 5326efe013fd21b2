"""Speech that can be read back: vowels and S spelt by letters, words of three of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from made_phones import phone_speech
from voxveil.audio.files import encode_flac
from voxveil.corpus.split import SplitWriter, Utterance
from voxveil.research.params import AsrParams

LETTERS = {"IY": "i", "AA": "a", "UW": "u", "EH": "e", "S": "s"}

#: The smallest network that learns a few utterances by heart.
SMALL = AsrParams(
    width=32,
    heads=2,
    encoder_layers=1,
    decoder_layers=1,
    feedforward=64,
    kernel=7,
    dropout=0.0,
    steps=100,
    batch_seconds=20.0,
    learning_rate=4e-3,
    label_smoothing=0.0,
    speeds="1",
    spec_augment=False,
    beam=4,
    workers=1,
)
#: Of no use but quick.
TINY = replace(SMALL, width=8, feedforward=8, steps=3, batch_seconds=2.0)


def dictated(speaker: int, number: int) -> tuple[Utterance, NDArray[np.float32]]:
    """Return an utterance of about 1.2 s with its transcript, and its audio."""
    audio, _, phones = phone_speech(speaker, number)
    letters = "".join(LETTERS.get(phone.label, "") for phone in phones)
    words = " ".join(letters[start : start + 3] for start in range(0, len(letters), 3))
    item = Utterance(f"s{speaker:02d}-{number}", f"s{speaker:02d}", "FM"[speaker % 2], len(audio), words)
    return item, audio


def dictation(count: int) -> tuple[list[Utterance], Mapping[str, NDArray[np.float32]]]:
    """Return utterances of three speakers and the audio of each."""
    made = [dictated(number % 3, number) for number in range(count)]
    return [item for item, _ in made], {item.id: audio for item, audio in made}


def write_dictation(folder: Path, speakers: range, utterances: int, *, flip: bool = False) -> None:
    """Write a split with transcripts; ``flip`` turns every spectrum round and drops the text."""
    with SplitWriter(folder) as writer:
        for item, audio in [dictated(s, n) for s in speakers for n in range(utterances)]:
            if flip:
                item, audio = replace(item, text=""), audio * np.where(np.arange(len(audio)) % 2, -1, 1)
            writer.add(item, encode_flac(audio.astype(np.float32), item.id)[0])


def texts(utterances: Sequence[Utterance]) -> list[str]:
    """Return the transcripts."""
    return [item.text for item in utterances]
