"""Speech networks of transformers: wav2vec 2.0, HuBERT and WavLM, for words, features or emotions.

Baevski et al., "wav2vec 2.0", NeurIPS 2020; Hsu et al., "HuBERT", TASLP 2021; Chen et al., "WavLM", 2022. A
model is ``config.json``, ``preprocessor_config.json``, the weights, and ``vocab.json`` where it recognizes
words. The configuration is copied into ``model.json``. No hub is contacted, and no code of a model runs.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import groupby
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from voxveil.audio.frames import SAMPLE_RATE
from voxveil.features.speaker.clips import at_least_minimum
from voxveil.pretrained.folder import PretrainedModel
from voxveil.pretrained.importing import read_tensors
from voxveil.pretrained.kinds import Emotion
from voxveil.pretrained.speaker import convert_weights, require_rate, with_weights
from voxveil.runtime.atomic import read_json
from voxveil.runtime.errors import InputError, import_extra, one_line
from voxveil.training.loop import device

__all__ = ["CtcRecognizer", "EmotionClassifier", "SpeechFeatures", "convert", "load"]

#: Names of the classes of transformers by ``model_type``.
_FAMILIES = {"wav2vec2": "Wav2Vec2", "hubert": "Hubert", "wavlm": "WavLM"}
_HEADS = {
    "transformers_ctc": "ForCTC",
    "transformers_features": "Model",
    "transformers_emotion": "ForSequenceClassification",
}
#: The two halves of a normalized weight, whose names changed with torch's versions.
_RENAMED = {
    "conv.weight_g": "conv.parametrizations.weight.original0",
    "conv.weight_v": "conv.parametrizations.weight.original1",
}


class _Loaded:
    """A network in evaluation mode; a result does not depend on other clips."""

    def __init__(self, model: PretrainedModel) -> None:
        require_rate(model)
        network = with_weights(_network(model.architecture, model.settings, str(model.folder)), model)
        self._network = network.to(device()).eval()
        self.model = model

    def _run(self, audio: NDArray[Any], name: str, **options: Any) -> Any:
        clip = torch.from_numpy(at_least_minimum(audio, name)).to(device())
        if self.model.settings["normalized"]:
            clip = (clip - clip.mean()) / torch.sqrt(clip.var(correction=0) + 1e-7)
        with torch.inference_mode():
            return self._network(clip[None], **options)


class CtcRecognizer(_Loaded):
    """A recognizer of words with connectionist temporal classification, decoded greedily."""

    def recognize(self, audio: NDArray[Any], name: str) -> str:
        """Return the words of (n,) samples at 16 kHz, separated by blanks."""
        settings = self.model.settings
        best = self._run(audio, name).logits[0].argmax(dim=-1).tolist()
        # Every token that is no text, such as the blank, separates two equal ones.
        letters = (settings["vocabulary"].get(str(token), "") for token, _ in groupby(best))
        return " ".join("".join(letters).replace(settings["delimiter"], " ").split())


class SpeechFeatures(_Loaded):
    """Features of a network that was trained without labels.

    Attributes:
        size: Values of a frame.
        stride_seconds: Time between two frames.
    """

    def __init__(self, model: PretrainedModel) -> None:
        super().__init__(model)
        self.size = int(model.settings["config"]["hidden_size"])
        self.stride_seconds = _stride(model.settings["config"]) / SAMPLE_RATE

    def frames(self, audio: NDArray[np.float32], name: str) -> NDArray[np.float32]:
        """Return the (T, size) mean over all transformer layers of (n,) samples at 16 kHz."""
        layers = self._run(audio, name, output_hidden_states=True).hidden_states[1:]
        result: NDArray[np.float32] = torch.stack(layers).mean(dim=0)[0].cpu().numpy()
        return result


class EmotionClassifier(_Loaded):
    """A classifier of a speaker's emotion."""

    def classify(self, audio: NDArray[np.float32], name: str) -> Emotion:
        """Return the most probable emotion of (n,) samples at 16 kHz, and the probability of each."""
        shares = self._run(audio, name).logits[0].double().softmax(dim=-1).tolist()
        return Emotion.of(dict(zip(self.model.settings["labels"], shares, strict=True)))


_LOADERS: dict[str, type[CtcRecognizer | SpeechFeatures | EmotionClassifier]] = {
    "transformers_ctc": CtcRecognizer,
    "transformers_features": SpeechFeatures,
    "transformers_emotion": EmotionClassifier,
}


def convert(files: Mapping[str, Path], folder: Path, name: str) -> dict[str, Any]:
    """Write the weights as safetensors and return the settings, which hold the configuration."""
    config = _json(files, "config.json", name)
    known = ", ".join(_FAMILIES)
    if config.get("model_type") not in _FAMILIES:
        got = config.get("model_type")
        raise InputError(f"{files['config.json']}: model_type is {got!r}, must be one of {known}")
    # Masks are drawn in training only; without them no network has a vector for masked frames.
    config |= {"mask_time_prob": 0.0, "mask_feature_prob": 0.0, "apply_spec_augment": False}
    preparation = _json(files, "preprocessor_config.json", name)
    settings: dict[str, Any] = {"config": config, "normalized": bool(preparation.get("do_normalize", True))}
    if name == "transformers_ctc":
        settings |= _vocabulary(files, config)
    elif name == "transformers_emotion":
        settings["labels"] = _labels(files["config.json"], config)
    where = files.get("model.safetensors") or files.get("pytorch_model.bin")
    if where is None:
        raise InputError(f"{name} needs model.safetensors or pytorch_model.bin; found: {', '.join(files)}")
    network = _network(name, settings, str(files["config.json"]))
    convert_weights(network, _fitting(read_tensors(where), network), str(where), folder)
    return {**settings, "sample_rate": int(preparation.get("sampling_rate", SAMPLE_RATE))}


def load(model: PretrainedModel) -> CtcRecognizer | SpeechFeatures | EmotionClassifier:
    """Return the loaded network, with the interface of its kind."""
    return _LOADERS[model.architecture](model)


def _json(files: Mapping[str, Path], file: str, name: str) -> dict[str, Any]:
    if file not in files:
        raise InputError(f"{name} needs {file}; found: {', '.join(sorted(files))}")
    content = read_json(files[file])
    if not isinstance(content, dict):
        raise InputError(f"{files[file]}: must be a JSON object")
    return content


def _network(name: str, settings: Mapping[str, Any], where: str) -> nn.Module:
    transformers = import_extra("transformers", "judges")
    config = dict(settings["config"])
    family = _FAMILIES[config["model_type"]]
    # Its weights are replaced at once, so the draws that fill it must not move those of the caller.
    with torch.random.fork_rng(devices=[]):
        try:
            sizes = getattr(transformers, f"{family}Config").from_dict(config)
            network: nn.Module = getattr(transformers, f"{family}{_HEADS[name]}")(sizes)
        except Exception as error:  # a wrong configuration raises errors of several kinds
            raise InputError(f"{where}: not sizes of a {family} ({one_line(error)[:160]})") from None
    return network


def _fitting(tensors: Mapping[str, torch.Tensor], network: Any) -> dict[str, torch.Tensor]:
    """Return the weights under the network's names; a head that it does not have is left out."""
    known, prefix = network.state_dict(), f"{network.base_model_prefix}."
    state = {}
    for name, value in tensors.items():
        for old, new in _RENAMED.items():
            name = name.replace(old, new)
        for candidate in (name, name.removeprefix(prefix), prefix + name):
            if candidate in known:
                state[candidate] = value
    return state


def _stride(config: Mapping[str, Any]) -> int:
    """Return the samples between two frames."""
    return prod(int(step) for step in config["conv_stride"])


def _vocabulary(files: Mapping[str, Path], config: Mapping[str, Any]) -> dict[str, Any]:
    """Return the text of each token that has one, by number, and the token between words."""
    tokens = _json(files, "vocab.json", "transformers_ctc")
    if not all(isinstance(number, int) for number in tokens.values()):
        raise InputError(f"{files['vocab.json']}: must hold the number of each token, of one language")
    if sorted(tokens.values()) != list(range(int(config.get("vocab_size", 32)))):
        raise InputError(f"{files['vocab.json']}: {len(tokens)} tokens do not fit vocab_size of config.json")
    options = _json(files, "tokenizer_config.json", "") if "tokenizer_config.json" in files else {}
    blank = int(config.get("pad_token_id") or 0)
    text = {
        str(number): token
        for token, number in tokens.items()
        if number != blank and not (token[:1] in "<[" and token[-1:] in ">]" and len(token) > 1)
    }
    return {"vocabulary": text, "delimiter": str(options.get("word_delimiter_token") or "|")}


def _labels(path: Path, config: Mapping[str, Any]) -> list[str]:
    """Return the emotions in the order of the network's outputs."""
    named = config.get("id2label")
    if not isinstance(named, dict) or sorted(named, key=int) != [str(n) for n in range(len(named))]:
        raise InputError(f"{path}: id2label must name each output, from 0")
    labels = [str(named[str(number)]) for number in range(len(named))]
    if len(labels) < 2 or len(set(labels)) != len(labels):
        got = ", ".join(labels)
        raise InputError(f"{path}: id2label must name two or more different emotions, got {got}")
    return labels
