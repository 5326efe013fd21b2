"""Small public and private speech, and untrained models in the format the training stages write.

Vowels are pulse trains through two resonances, so F0, voicing and sample counts are known. The
models have random weights: what is tested with them does not depend on how well they speak.
"""

from __future__ import annotations

import zlib
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from voxveil.anonymize.bundle import write_bundle
from voxveil.audio.files import encode_flac
from voxveil.audio.frames import HOP, SAMPLE_RATE, frame_count
from voxveil.config import parse_params
from voxveil.config.compose import params_text
from voxveil.config.model import SystemParams
from voxveil.corpus.split import SplitWriter, Utterance
from voxveil.features.content.model import ContentModel, ContentSize
from voxveil.features.pitch.model import PitchAutoencoder
from voxveil.features.speaker.pool import PoolEntry, build_pool
from voxveil.runtime.atomic import write_json
from voxveil.runtime.done import finish
from voxveil.synthesis.acoustic import AcousticModel, AcousticSize
from voxveil.synthesis.vocoder import Vocoder, VocoderSize
from voxveil.training.checkpoint import write_trained
from voxveil.training.loop import seeded

M, E, CHANNELS = 12, 16, 4
PHONES = ("SIL", "A", "B")
CORPUS = {
    "format": 1,
    "name": "made",
    "synthetic": True,
    "public": True,
    "revision": "ab" * 32,
    "splits": {},
    "overlaps": [],
}
SYSTEMS = {
    "original": SystemParams(kind="original"),
    "mcadams": SystemParams(kind="mcadams"),
    "copy": SystemParams(kind="copy_synthesis"),
    "anon": SystemParams(),
    "anon_pc": SystemParams(pitch_conversion=True),
    "anon_dp": SystemParams(pitch="dp", content="dp"),
}

Array = NDArray[np.float32]


def speak(f0: float, samples: int, key: int = 0) -> tuple[Array, Array]:
    """Return (audio (n,), F0 (K,)): a vowel with a glide, its last quarter voiceless noise."""
    rng = np.random.default_rng(key)
    time = np.arange(samples) / SAMPLE_RATE
    hertz = f0 * np.exp(0.1 * np.sin(2 * np.pi * 1.5 * time))
    phase = 2 * np.pi * np.cumsum(hertz) / SAMPLE_RATE
    audio = sum(np.exp(-0.5 * ((h * f0 - 700) / 500) ** 2) * np.cos(h * phase) for h in range(1, 20))
    voiced = time < 0.75 * samples / SAMPLE_RATE
    audio = np.where(voiced, 0.05 * audio, 0.0) + 0.01 * rng.standard_normal(samples)
    frames = np.minimum(np.arange(frame_count(samples)) * HOP, max(samples - 1, 0))
    return audio.astype(np.float32), np.where(voiced[frames], hertz[frames], 0.0).astype(np.float32)


def write_speech(folder: Path, speakers: Mapping[str, Sequence[int]], *, text: str = "") -> list[Utterance]:
    """Write a split.

    Args:
        folder: Where to.
        speakers: Sample counts of each speaker's utterances; F0 differs by speaker.
        text: Transcript of every utterance.
    """
    made = []
    with SplitWriter(folder) as writer:
        for index, (speaker, lengths) in enumerate(speakers.items()):
            for number, samples in enumerate(lengths):
                audio, f0 = speak(100.0 + 15 * index, samples, zlib.crc32(f"{speaker} {number}".encode()))
                utterance = Utterance(f"{speaker}-{number}", speaker, "FM"[index % 2], samples, text)
                writer.add(utterance, encode_flac(audio, utterance.id)[0], f0=f0)
                made.append(utterance)
    return made


def write_prepared(folder: Path, *, public: bool = True) -> None:
    """Write finished ``public`` and ``private`` outputs of prepare."""
    lengths = (9_600, 8_160, 12_159)
    for split, names in (("extractor", "abcd"), ("pool", "efgh"), ("attacker", "ij")):
        write_speech(folder / "public" / split, {f"{split[0]}{name}": lengths for name in names})
    private = {"p1": (9_600, 1, 15_999), "p2": (16_001, 400, 9_000)}
    write_speech(folder / "private" / "private", private, text="A SECRET")
    for side, declared in (("public", True), ("private", public)):
        write_json(folder / side / "corpus.json", {**CORPUS, "public": declared})
        finish(folder / side, "prepare", None)


def write_models(folder: Path) -> None:
    """Write untrained ``pitch/{plain,dp}``, ``content/{plain,dp}`` and one of every other model."""
    with seeded(1, "made"):
        content = ContentModel(ContentSize(M, 16, 8, 2, len(PHONES)))
        models = {
            "pitch/plain": (torch.nn.Module(), {"kind": "pitch"}),
            "pitch/dp": (
                PitchAutoencoder(CHANNELS),
                {"kind": "pitch", "channels": CHANNELS, "slope": 0.2, "offset": 0.6},
            ),
            "content/plain": (content, {"kind": "content"}),
            "content/dp": (content, {"kind": "content"}),
            "vocoder": _described(Vocoder(VocoderSize(8))),
            "synthesis": _described(AcousticModel(AcousticSize(M, E, 16, 2))),
        }
    for name, (model, description) in models.items():
        kind, _, variant = name.partition("/")
        facts = dict(description)
        if variant:
            facts |= {
                "mechanism": "laplace" if variant == "dp" else "identity",
                "epsilon": 10.0 * (variant == "dp"),
            }
        if kind == "content":
            facts |= {"size": content.size.to_json(), "phones": list(PHONES)}
            facts |= {"class_phones": list(range(len(PHONES))), "every": 1}
        if kind == "synthesis":
            facts |= {"corpus": {key: CORPUS[key] for key in ("name", "synthetic", "public", "revision")}}
        (folder / name).mkdir(parents=True)
        write_trained(folder / name, model, facts, [{"step": 1, "loss": 1.0}], {})
    write_pool(folder / "speaker")


def write_pool(folder: Path) -> None:
    """Write ``pool.npz`` of six voices, and the ``model.json`` that goes with it."""
    rng = np.random.default_rng(3)
    entries = []
    for voice in range(6):
        centre = rng.standard_normal(E)
        for number in range(2):
            vector = centre + 0.1 * rng.standard_normal(E)
            embedding = (vector / np.linalg.norm(vector)).astype(np.float32)
            f0 = speak(110.0 + 20 * voice, 8_000)[1]
            entries.append(PoolEntry(f"v{voice}-{number}", f"v{voice}", "FM"[voice % 2], embedding, f0))
    folder.mkdir(parents=True)
    build_pool(entries).save(folder / "pool.npz")
    write_json(folder / "model.json", {"target_members": 2})


def write_bundles(folder: Path, models: Path) -> None:
    """Write a bundle of every system of :data:`SYSTEMS` into ``folder/<system>``."""
    for name, system in SYSTEMS.items():
        parts = {
            "pitch": models / "pitch" / system.pitch,
            "content": models / "content" / system.content,
            "speaker": models / "speaker",
            "vocoder": models / "vocoder",
            "synthesis": models / "synthesis",
        }
        facts = {key: CORPUS[key] for key in ("name", "synthetic", "public", "revision")}
        write_bundle(folder / name, name, system, parts, facts)
        finish(folder / name, "bundle", name)


def made_bundles(folder: Path) -> Path:
    """Write untrained models into ``folder/models``, bundles of them into ``folder/bundles``; return that."""
    write_models(folder / "models")
    write_bundles(folder / "bundles", folder / "models")
    return folder / "bundles"


def _described(model: Vocoder | AcousticModel) -> tuple[torch.nn.Module, dict[str, object]]:
    return model, model.describe()


def write_params(path: Path, **sections: dict[str, object]) -> Path:
    """Write a whole params file for :data:`SYSTEMS` at the smallest sizes."""
    content: dict[str, dict[str, object]] = {
        "base": {"scale": "made", "threads": 1},
        "systems": {
            name: {
                "kind": system.kind,
                "pitch": system.pitch,
                "content": system.content,
                "pitch_conversion": system.pitch_conversion,
            }
            for name, system in SYSTEMS.items()
        },
        "pitch_variants": {"plain": {}, "dp": {"mechanism": "laplace", "epsilon": 10}},
        "content_variants": {"plain": {}, "dp": {"mechanism": "laplace", "epsilon": 10}},
        "train_vocoder": {"channels": 8, "steps": 6, "batch": 2, "crop_frames": 30},
        "train_synthesis": {"channels": 16, "layers": 2, "steps": 8, "batch": 2, "crop_frames": 30},
        "anonymize": {"samples": 2},
    }
    for name, section in sections.items():
        content[name] = {**content.get(name, {}), **section}
    path.write_text(params_text(parse_params(content)))
    return path


def write_speaker_model(folder: Path) -> None:
    """Write an untrained speaker encoder beside the pool, and finish the output."""
    from voxveil.features.speaker.encoder import EncoderSize, SpeakerEncoder, SpeakerNetwork

    with seeded(1, "speaker"):
        encoder = SpeakerEncoder(SpeakerNetwork(EncoderSize(16, E)))
    encoder.save(folder, {"target_members": 2})
    finish(folder, "train_speaker", None)
