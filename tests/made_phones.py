"""Small splits whose phones are known: each phone has two resonances of its own, each speaker a pitch.

Two numbers seed a split, so it is the same every time; phones last 60 to 140 ms.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from voxveil.audio.files import encode_flac
from voxveil.audio.frames import HOP, SAMPLE_RATE, frame_count
from voxveil.config import parse_params
from voxveil.config.compose import params_text
from voxveil.corpus.phones import PHONES, SILENCE
from voxveil.corpus.split import Phone, SplitWriter, Utterance
from voxveil.corpus.trials import draw_trials, write_trials
from voxveil.runtime.atomic import write_json
from voxveil.runtime.done import finish
from voxveil.runtime.seeding import stream
from voxveil.stages.run import run_stage

#: Label -> resonances in Hz.
SPOKEN: Mapping[str, tuple[float, float]] = {
    "IY": (350.0, 2600.0),
    "AA": (900.0, 1300.0),
    "UW": (350.0, 800.0),
    "EH": (650.0, 2000.0),
    "S": (5000.0, 6500.0),
}
assert set(SPOKEN) < set(PHONES)


def phone_speech(
    speaker: int, utterance: int
) -> tuple[NDArray[np.float32], NDArray[np.float32], list[Phone]]:
    """Return (audio (n,), F0 (K,), phones) of about 1.2 s, silence at both ends."""
    draw = stream(5, "phone speech", speaker, utterance)
    labels = [SILENCE]
    while len(labels) < 11:
        label = str(draw.choice(list(SPOKEN)))
        if label != labels[-1]:
            labels.append(label)
    labels.append(SILENCE)
    phones, start = [], 0.0
    for label in labels:
        seconds = float(draw.uniform(0.06, 0.14))
        phones.append(Phone(start, seconds, label))
        start += seconds
    # A multiple of the hop: odd lengths would make the transforms below ten times slower.
    time = np.arange(int(start * SAMPLE_RATE) // HOP * HOP) / SAMPLE_RATE
    hertz = (90 + 14 * speaker) * np.exp(0.15 * np.sin(2 * np.pi * 1.3 * time + speaker))
    phase = np.cumsum(hertz) / SAMPLE_RATE
    spectrum = np.fft.rfftfreq(len(time), 1 / SAMPLE_RATE)
    pulses = np.fft.rfft(4 * (np.diff(np.floor(phase), prepend=0.0) - hertz / SAMPLE_RATE))
    noise = np.fft.rfft(0.3 * draw.standard_normal(len(time)))
    audio = 1e-4 * draw.standard_normal(len(time))
    for label, formants in SPOKEN.items():
        shape = sum(1 / (1 + ((spectrum - f) / 90) ** 2) for f in formants)
        spoken = np.fft.irfft((noise if label == "S" else pulses) * shape, len(time))
        for phone in phones:
            if phone.label == label:
                inside = (time >= phone.start) & (time < phone.start + phone.seconds)
                audio += spoken * inside
    f0 = np.zeros(frame_count(len(time)), np.float32)
    for k in range(len(f0)):
        sample = min(k * HOP, len(time) - 1)
        label = next(
            (p.label for p in phones if p.start <= sample / SAMPLE_RATE < p.start + p.seconds), SILENCE
        )
        f0[k] = 0.0 if label in (SILENCE, "S") else hertz[sample]
    return (0.3 * audio / np.abs(audio).max()).astype(np.float32), f0, phones


def write_phone_split(
    folder: Path, speakers: range, utterances: int, *, phones: bool = True
) -> list[Utterance]:
    """Write a split with audio, F0 and (unless told otherwise) phones."""
    written = []
    with SplitWriter(folder) as writer:
        for speaker in speakers:
            for number in range(utterances):
                audio, f0, timing = phone_speech(speaker, number)
                item = Utterance(
                    f"s{speaker:02d}-{number}", f"s{speaker:02d}", "FM"[speaker % 2], len(audio), ""
                )
                flac, _ = encode_flac(audio, item.id)
                writer.add(item, flac, f0=f0, phones=timing if phones else None)
                written.append(item)
    return written


def write_phone_corpus(folder: Path, *, phones: bool = True) -> None:
    """Write finished outputs of prepare: ``public`` (8 speakers) and ``private`` (4)."""
    facts = {"format": 1, "name": "made", "synthetic": True, "public": True, "revision": "cd" * 32}
    write_phone_split(folder / "public" / "extractor", range(8), 6, phones=phones)
    private = write_phone_split(folder / "private" / "private", range(8, 12), 3, phones=phones)
    write_trials(folder / "private" / "trials", draw_trials(private, 1, 1))
    for side in ("public", "private"):
        write_json(folder / side / "corpus.json", facts)
        finish(folder / side, "prepare", None)


def write_params(path: Path, **sections: Mapping[str, Any]) -> Path:
    """Write a complete params file with the smallest sizes that learn; ``sections`` override."""
    content: dict[str, dict[str, Any]] = {
        "base": {"scale": "made", "seed": 3, "threads": 1},
        "systems": {"original": {"kind": "original"}, "anon": {}},
        "train_pitch": {
            "channels": 4,
            "steps": 12,
            "batch": 8,
        },
        "pitch_variants": {
            "plain": {},
            "dp": {"mechanism": "laplace", "epsilon": 10},
            "weak": {"mechanism": "laplace", "epsilon": 1e6},
        },
        "train_content": {
            "bottleneck": 16,
            "hidden": 32,
            "factor": 12,
            "layers": 2,
            "steps": 80,
            "chunk_frames": 60,
        },
        "content_variants": {"plain": {}, "dp": {"mechanism": "laplace", "epsilon": 10}},
    }
    for name, values in sections.items():
        content.setdefault(name, {}).update(values)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(params_text(parse_params(content)))
    return path


def run_trained(stage: str, key: str, corpus: Path, out: Path, **sections: Mapping[str, Any]) -> Path:
    """Run train_pitch or train_content on :func:`write_phone_corpus`; return the model folder."""
    run_stage(
        stage,
        write_params(out / "params.yaml", **sections),
        {"public": corpus / "public"},
        {"model": out / "model", "metrics": out / "metrics.json", "curve": out / "curve.csv"},
        key=key,
    )
    return out / "model"
