"""The table of architectures that can be imported: kind, files, and the module that converts and loads."""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from typing import Any

from voxveil.pretrained.folder import PretrainedModel
from voxveil.runtime.errors import InputError

__all__ = ["ARCHITECTURES", "Architecture", "architecture", "load"]


@dataclass(frozen=True)
class Architecture:
    """How models of one architecture are imported and loaded.

    Attributes:
        kind: What the models do.
        module: Module below :mod:`voxveil.pretrained` with ``convert`` and ``load``.
        files: File name patterns that the import reads.
        help: One line for people.
    """

    kind: str
    module: str
    files: tuple[str, ...]
    help: str


_TRANSFORMERS = ("config.json", "preprocessor_config.json", "model.safetensors", "pytorch_model.bin")

ARCHITECTURES: dict[str, Architecture] = {
    "campplus": Architecture(
        "speaker",
        "campplus",
        ("campplus*.pt", "campplus*.bin"),
        "CAM++ speaker network of 3D-Speaker, 192-dim",
    ),
    "speechbrain_ecapa": Architecture(
        "speaker",
        "speechbrain_speaker",
        ("embedding_model.ckpt", "model.safetensors"),
        "ECAPA-TDNN of SpeechBrain (spkrec-ecapa-voxceleb)",
    ),
    "speechbrain_xvector": Architecture(
        "speaker",
        "speechbrain_speaker",
        ("embedding_model.ckpt", "model.safetensors"),
        "x-vector network of SpeechBrain (spkrec-xvect-voxceleb)",
    ),
    "onnx_speaker": Architecture(
        "speaker",
        "onnx_speaker",
        ("*.onnx",),
        "speaker network in ONNX: filterbanks or samples to one vector",
    ),
    "faster_whisper": Architecture(
        "recognizer",
        "faster_whisper",
        ("model.bin*", "config.json", "tokenizer.json", "vocabulary.*", "preprocessor_config.json"),
        "Whisper for CTranslate2 (faster-whisper)",
    ),
    "speechbrain_asr": Architecture(
        "recognizer",
        "speechbrain_asr",
        ("hyperparams.yaml", "*.ckpt"),
        "recognizer of SpeechBrain (EncoderASR, EncoderDecoderASR)",
    ),
    "transformers_ctc": Architecture(
        "recognizer",
        "transformers_speech",
        (*_TRANSFORMERS, "vocab.json", "tokenizer_config.json"),
        "wav2vec 2.0, HuBERT or WavLM of transformers with CTC",
    ),
    "transformers_features": Architecture(
        "features", "transformers_speech", _TRANSFORMERS, "wav2vec 2.0, HuBERT or WavLM of transformers"
    ),
    "transformers_emotion": Architecture(
        "emotion",
        "transformers_speech",
        _TRANSFORMERS,
        "wav2vec 2.0, HuBERT or WavLM of transformers, classifying utterances",
    ),
    "hifigan": Architecture(
        "vocoder",
        "hifigan",
        ("config.json", "g_*", "generator*", "model.safetensors"),
        "generator of HiFi-GAN at 16 kHz, hop 160: first weights of nsf_gan",
    ),
    "silero_vad": Architecture("voice_activity", "silero", ("silero_vad.onnx",), "Silero VAD"),
    "dnsmos": Architecture("naturalness", "dnsmos", ("sig_bak_ovr.onnx",), "DNSMOS P.835, overall quality"),
    "distillmos": Architecture("naturalness", "distillmos", ("distill_mos_v7.pt",), "DistillMOS"),
}


def architecture(name: str) -> Architecture:
    """Return an entry of :data:`ARCHITECTURES`.

    Raises:
        InputError: Unknown name, with the list of known ones.
    """
    if name not in ARCHITECTURES:
        raise InputError(f"architecture {name!r} is unknown, must be one of {', '.join(ARCHITECTURES)}")
    return ARCHITECTURES[name]


def load(model: PretrainedModel) -> Any:
    """Return the loaded model; its interface is that of its kind in :mod:`voxveil.pretrained.kinds`."""
    module = import_module(f"voxveil.pretrained.{architecture(model.architecture).module}")
    return module.load(model)
