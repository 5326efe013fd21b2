"""WavLM features; the model is a local folder or the name of a hub model.

Chen et al., "WavLM: large-scale self-supervised pre-training for full stack speech processing", 2022.
The folder is that of Hugging Face's transformers (``config.json``, ``model.safetensors``), which need
not be installed: torchaudio has the network. A model that only comes as a pickle is not read.
"""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any, Self

import numpy as np
import torch
from numpy.typing import NDArray

from voxveil.attack.attackers.interface import TrainingSetup
from voxveil.corpus.split import Speech
from voxveil.features.speaker.clips import at_least_minimum
from voxveil.runtime.atomic import read_json, write_json
from voxveil.runtime.errors import InputError, ParamsError
from voxveil.training.loop import device

__all__ = ["STRIDE_SECONDS", "WavLM", "WavLMStatistics", "find_wavlm"]

#: Time between two frames of features.
STRIDE_SECONDS = 0.02
_WEIGHTS = "model.safetensors"
_ABSENT = (
    "train_attacker.wavlm: WavLM is not here ({why}); give a folder with config.json and "
    "model.safetensors, or the name of a hub model, e.g. microsoft/wavlm-base-plus, with internet"
)


def find_wavlm(where: str) -> Path:
    """Return the folder of a WavLM model.

    Args:
        where: A folder, or the name ``OWNER/MODEL`` of a hub model, which is fetched.

    Raises:
        ParamsError: It is neither, in one line that says what is missing.
    """
    if not where:
        raise ParamsError(_ABSENT.format(why="no folder or name is given"))
    folder = Path(where)
    if folder.is_dir():
        for name in ("config.json", _WEIGHTS):
            if not (folder / name).is_file():
                raise ParamsError(_ABSENT.format(why=f"{folder / name}: no such file"))
        return folder
    if where.count("/") != 1 or where.startswith(("/", ".")):
        raise ParamsError(_ABSENT.format(why=f"{where}: no such folder"))
    try:
        from huggingface_hub import snapshot_download

        found = Path(snapshot_download(where, allow_patterns=["*.json", _WEIGHTS]))
    except ImportError:
        raise ParamsError(_ABSENT.format(why="huggingface_hub is not installed")) from None
    except Exception as error:  # the hub client raises errors of several libraries
        reason = type(error).__name__
        raise ParamsError(_ABSENT.format(why=f"{where} could not be fetched, {reason}")) from None
    if not (found / _WEIGHTS).is_file():
        raise ParamsError(_ABSENT.format(why=f"{where} has no {_WEIGHTS}"))
    return found


class WavLM:
    """A frozen network that gives frames of features.

    Args:
        folder: Holds ``config.json`` and ``model.safetensors``.

    Raises:
        InputError: They are of no WavLM, or do not fit together.
    """

    def __init__(self, folder: Path) -> None:
        config = read_json(folder / "config.json")
        if not isinstance(config, dict) or config.get("model_type") != "wavlm":
            raise InputError(f"{folder / 'config.json'}: not the configuration of a WavLM")
        self.folder = folder
        self.size = int(config["hidden_size"])
        self._normalized = _normalizes(folder)
        self._network = _network(config, folder / _WEIGHTS).to(device()).eval()

    def frames(self, audio: NDArray[np.float32], name: str) -> NDArray[np.float32]:
        """Return the (T, size) mean over all layers, a frame every 20 ms."""
        clip = torch.from_numpy(at_least_minimum(audio, name)).to(device())
        if self._normalized:
            clip = (clip - clip.mean()) / clip.std().clamp_min(1e-7)
        with torch.inference_mode():
            layers, _ = self._network.extract_features(clip[None])
            mean = torch.stack(layers).mean(dim=0)[0]
        result: NDArray[np.float32] = mean.cpu().numpy()
        return result


class WavLMStatistics:
    """The front end: mean and deviation over time of WavLM's features."""

    kind = "wavlm"

    def __init__(self, network: WavLM) -> None:
        self._network = network

    @classmethod
    def train(cls, speech: Speech, setup: TrainingSetup) -> tuple[Self, None]:
        """Return the front end with the network that the parameters name; it stays as it is."""
        return cls(WavLM(find_wavlm(setup.params.wavlm))), None

    @classmethod
    def load(cls, folder: Path, content: dict[str, Any]) -> Self:
        """Read the network that ``model.json`` names."""
        return cls(WavLM(find_wavlm(content["wavlm"])))

    def raw(self, audio: NDArray[np.float32], name: str) -> NDArray[Any]:
        """Return the (2 size,) mean and standard deviation over time."""
        frames = self._network.frames(audio, name).astype(np.float64)
        return np.concatenate([frames.mean(axis=0), frames.std(axis=0)])

    def save(self, folder: Path, facts: dict[str, Any]) -> None:
        """Write ``model.json``, which names the folder of the network; weights are not copied."""
        where = str(self._network.folder)
        write_json(Path(folder) / "model.json", {"format": 1, **facts, "wavlm": where})


def _normalizes(folder: Path) -> bool:
    path = folder / "preprocessor_config.json"
    return path.is_file() and bool(read_json(path).get("do_normalize"))


def _network(config: dict[str, Any], weights: Path) -> Any:
    """Build torchaudio's network and fill it from weights named as in transformers."""
    from safetensors import SafetensorError
    from safetensors.torch import load_file
    from torchaudio.models import wavlm_model
    from torchaudio.models.wav2vec2.utils.import_huggingface import (
        _get_config_wavlm,
        transform_wavlm_encoder_state,
    )

    try:
        network = wavlm_model(**_get_config_wavlm(SimpleNamespace(**config)), aux_num_out=None)
        state = {name.removeprefix("wavlm."): value for name, value in load_file(weights).items()}
        network.feature_extractor.load_state_dict(_below(state, "feature_extractor."))
        network.encoder.feature_projection.load_state_dict(_below(state, "feature_projection."))
        encoder = _below(state, "encoder.")
        transform_wavlm_encoder_state(encoder, config["num_hidden_layers"])
        known = network.encoder.transformer.state_dict()
        network.encoder.transformer.load_state_dict(_weight_norm(encoder, known))
    except (SafetensorError, AttributeError, KeyError, RuntimeError, TypeError) as error:
        reason = " ".join(str(error).split())[:160]
        raise InputError(f"{weights}: does not fit its config.json ({reason})") from None
    return network


def _below(state: dict[str, Any], prefix: str) -> dict[str, Any]:
    return {name.removeprefix(prefix): value for name, value in state.items() if name.startswith(prefix)}


def _weight_norm(state: dict[str, Any], known: dict[str, Any]) -> dict[str, Any]:
    """Rename the two halves of a normalized weight, whose names changed with torch's versions."""
    names = (
        ("weight_g", "weight_v"),
        ("parametrizations.weight.original0", "parametrizations.weight.original1"),
    )
    prefix = "pos_conv_embed.conv."
    wanted = next(pair for pair in names if prefix + pair[0] in known)
    result = dict(state)
    for pair in names:
        for old, new in zip(pair, wanted, strict=True):
            if prefix + old in result:
                result[prefix + new] = result.pop(prefix + old)
    return result
