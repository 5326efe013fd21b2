"""Recognizers of SpeechBrain, ``EncoderASR`` and ``EncoderDecoderASR``, from their published files.

Ravanelli et al., "Open-source conversational AI with SpeechBrain 1.0", JMLR 2024. The layers of such a model
stand in ``hyperparams.yaml`` alone, which in SpeechBrain's reader can create any Python object. Here it may
name layers, features, decoders and tokenizers of SpeechBrain, layers of torch, and nothing else.
"""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

import torch
from numpy.typing import NDArray
from safetensors.torch import save as save_tensors

from voxveil.audio.frames import SAMPLE_RATE
from voxveil.features.speaker.clips import at_least_minimum
from voxveil.pretrained.folder import PretrainedModel
from voxveil.pretrained.importing import read_checkpoint, read_tensors
from voxveil.pretrained.speaker import require_rate
from voxveil.runtime.atomic import write_bytes
from voxveil.runtime.errors import InputError, one_line
from voxveil.training.loop import device
from voxveil.training.placeholders import remove_placeholders

__all__ = ["SpeechBrainRecognizer", "convert", "load"]

_SETTINGS = "hyperparams.yaml"
#: Modules whose classes and functions a file may name, themselves and what is below them.
_ALLOWED = (
    "sentencepiece",
    "speechbrain.dataio.encoder",
    "speechbrain.decoders",
    "speechbrain.lobes.features",
    "speechbrain.lobes.models.CRDNN",
    "speechbrain.lobes.models.RNNLM",
    "speechbrain.lobes.models.VanillaNN",
    "speechbrain.lobes.models.convolution",
    "speechbrain.lobes.models.transformer",
    "speechbrain.nnet",
    "speechbrain.processing.features",
    "speechbrain.utils.parameter_transfer",
    "torch.nn",
)
#: Tags of plain values and of references between them.
_PLAIN = {
    *("!ref", "!copy", "!tuple"),
    *(f"tag:yaml.org,2002:{name}" for name in ("null", "bool", "int", "float", "str", "seq", "map")),
}


class SpeechBrainRecognizer:
    """A loaded recognizer; a result does not depend on earlier utterances."""

    def __init__(self, model: PretrainedModel) -> None:
        require_rate(model)
        self._network = _filled(model)
        self.model = model

    def recognize(self, audio: NDArray[Any], name: str) -> str:
        """Return the words of (n,) samples at 16 kHz, separated by blanks."""
        clip = torch.from_numpy(at_least_minimum(audio, name))
        with torch.inference_mode():
            found = self._network.transcribe_batch(clip[None], torch.ones(1))[0][0]
        # A tokenizer of characters returns a list of them.
        return " ".join((found if isinstance(found, str) else "".join(found)).split())


def convert(files: Mapping[str, Path], folder: Path, name: str) -> dict[str, Any]:
    """Copy settings and tokenizer, write the weights as safetensors and return the settings of the model."""
    if _SETTINGS not in files:
        raise InputError(f"{name} needs {_SETTINGS}; found: {', '.join(sorted(files))}")
    settings = _read_settings(files[_SETTINGS])
    shutil.copyfile(files[_SETTINGS], folder / _SETTINGS)
    for part, target in _parts(settings, files[_SETTINGS]).items():
        source = files.get(f"{part}.ckpt")
        if source is None:
            raise InputError(f"{name} needs {part}.ckpt; found: {', '.join(sorted(files))}")
        if _is_statistics(target):
            found = read_checkpoint(source)
            try:
                tensors = {key: torch.as_tensor(found[key]) for key in ("count", "glob_mean", "glob_std")}
            except (KeyError, TypeError, ValueError, RuntimeError):
                raise InputError(f"{source}: not the statistics of a normalization") from None
        elif isinstance(target, torch.nn.Module):
            tensors = read_tensors(source)
        else:
            shutil.copyfile(source, folder / f"{part}.tokenizer")
            continue
        plain = {key: value.contiguous().clone() for key, value in tensors.items()}
        write_bytes(folder / f"{part}.safetensors", save_tensors(plain))
    return {"sample_rate": int(settings.get("sample_rate", SAMPLE_RATE))}


def load(model: PretrainedModel) -> SpeechBrainRecognizer:
    """Return the loaded recognizer."""
    return SpeechBrainRecognizer(model)


def _filled(model: PretrainedModel) -> Any:
    """Return SpeechBrain's recognizer with the weights of an imported model."""
    from speechbrain.inference.ASR import EncoderASR, EncoderDecoderASR

    remove_placeholders()
    path = model.folder / _SETTINGS
    settings = _read_settings(path)
    for part, target in _parts(settings, path).items():
        weights = model.folder / f"{part}.safetensors"
        try:
            if _is_statistics(target):
                found = read_tensors(weights)
                target._load_statistics_dict({**found, "count": int(found["count"])})
            elif isinstance(target, torch.nn.Module):
                target.load_state_dict(read_tensors(weights))
            else:
                _load_tokenizer(target, model.folder / f"{part}.tokenizer")
        except (RuntimeError, KeyError, TypeError, ValueError, OSError) as error:
            raise InputError(f"{weights}: does not fit {_SETTINGS} ({one_line(error)[:200]})") from None
    if "kenlm_model_path" in (settings.get("test_beam_search") or {}):
        raise InputError(f"{path}: test_beam_search.kenlm_model_path names a file elsewhere; remove it")
    modules = settings.get("modules")
    if not isinstance(modules, dict) or "encoder" not in modules:
        raise InputError(f"{path}: modules must hold an encoder")
    kind = EncoderDecoderASR if "decoder" in modules else EncoderASR
    try:
        return kind(modules=modules, hparams=settings, run_opts={"device": str(device())})
    except Exception as error:  # its checks raise errors of several kinds
        raise InputError(f"{path}: not an {kind.__name__} ({one_line(error)[:200]})") from None


def _parts(settings: Mapping[str, Any], path: Path) -> dict[str, Any]:
    """Return the objects that have a file of their own, by the stem of it."""
    parts = getattr(settings.get("pretrainer"), "loadables", None)
    if not parts:
        raise InputError(f"{path}: pretrainer must name the parts that have files (loadables)")
    return {str(name): target for name, target in parts.items()}


def _is_statistics(target: object) -> bool:
    return type(target).__name__ == "InputNormalization"


def _load_tokenizer(target: Any, path: Path) -> None:
    if type(target).__module__.partition(".")[0] == "sentencepiece":
        target.Load(str(path))
    else:
        target.load(str(path))


def _read_settings(path: Path) -> dict[str, Any]:
    """Create the objects of ``hyperparams.yaml``, after every name in it was checked.

    Raises:
        InputError: It names something that is not allowed, or cannot be read.
    """
    import yaml
    from hyperpyyaml import load_hyperpyyaml, resolve_references

    class Loader(yaml.SafeLoader):
        """A loader of its own, because the reader adds constructors to the class."""

    try:
        text = path.read_text(encoding="utf-8")
        _check_names(text, path)
        _check_names(resolve_references(text).getvalue(), path)
        # Its weights are replaced at once, so the draws that fill it must not move those of the caller.
        with torch.random.fork_rng(devices=[]):
            content: dict[str, Any] = load_hyperpyyaml(text, loader=Loader)
    except InputError:
        raise
    except Exception as error:  # layers refuse their arguments by errors of several kinds
        raise InputError(f"{path}: cannot be read ({one_line(error)[:200]})") from None
    finally:
        remove_placeholders()
    return content


def _check_names(text: str, path: Path) -> None:
    import yaml

    for event in yaml.parse(text, Loader=yaml.SafeLoader):
        tag = getattr(event, "tag", None)
        if not tag or tag in _PLAIN:
            continue
        kind, _, name = tag.partition(":")
        if kind not in ("!new", "!name") or not _allowed(name):
            raise InputError(
                f"{path}: names {tag!r}; must name layers, features, decoders or tokenizers of SpeechBrain"
                " or layers of torch, because anything else could run code or download files"
            )


def _allowed(name: str) -> bool:
    """Return whether a dotted name is a class or function that an allowed module itself defines."""
    module, _, attribute = name.rpartition(".")
    if not _below(module):
        return False
    try:
        found = getattr(import_module(module), attribute)
    except (ImportError, AttributeError):
        return False
    finally:
        remove_placeholders()
    return callable(found) and _below(str(getattr(found, "__module__", "")))


def _below(module: str) -> bool:
    return any(module == allowed or module.startswith(f"{allowed}.") for allowed in _ALLOWED)
