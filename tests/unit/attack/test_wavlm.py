"""WavLM from a local folder: a tiny network with random weights, stored as transformers store one."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from made_voices import voice, write_voices
from voxveil.attack.attackers.interface import TrainingSetup
from voxveil.attack.attackers.registry import load_attacker, train_attacker
from voxveil.attack.wavlm import WavLM, find_wavlm
from voxveil.config.networks import TrainAttackerParams
from voxveil.runtime.errors import InputError, ParamsError

pytestmark = [pytest.mark.torch, pytest.mark.usefixtures("one_thread")]

CONFIG = {
    "model_type": "wavlm",
    "feat_extract_norm": "layer",
    "conv_dim": [8, 8, 8, 8, 8, 8, 8],
    "conv_kernel": [10, 3, 3, 3, 3, 2, 2],
    "conv_stride": [5, 2, 2, 2, 2, 2, 2],
    "conv_bias": False,
    "hidden_size": 16,
    "feat_proj_dropout": 0.0,
    "num_conv_pos_embeddings": 8,
    "num_conv_pos_embedding_groups": 2,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "num_buckets": 16,
    "max_bucket_distance": 40,
    "attention_dropout": 0.0,
    "intermediate_size": 24,
    "activation_dropout": 0.0,
    "hidden_dropout": 0.0,
    "do_stable_layer_norm": True,
    "layerdrop": 0.0,
}


def write_wavlm(folder: Path) -> Path:
    """Write a network with the names that transformers give."""
    from safetensors.torch import save_file
    from torchaudio.models import wavlm_model
    from torchaudio.models.wav2vec2.utils.import_huggingface import _get_config_wavlm

    with torch.random.fork_rng():
        torch.manual_seed(1)
        network = wavlm_model(**_get_config_wavlm(SimpleNamespace(**CONFIG)), aux_num_out=None)
    state = {}
    for name, value in network.state_dict().items():
        renamed = name.removeprefix("encoder.") if name.startswith("encoder.feature_projection") else name
        renamed = renamed.replace("encoder.transformer.", "encoder.").replace(
            "attention.attention.", "attention."
        )
        if "in_proj" in renamed:
            for part, piece in zip("qkv", value.chunk(3), strict=True):
                state[renamed.replace("in_proj_", f"{part}_proj.")] = piece.clone()
        else:
            state[renamed] = value.clone()
    folder.mkdir(parents=True)
    save_file({name: value.contiguous() for name, value in state.items()}, folder / "model.safetensors")
    (folder / "config.json").write_text(json.dumps(CONFIG))
    return folder


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_wavlm(tmp_path_factory.mktemp("models") / "wavlm")


def test_a_local_folder_gives_a_frame_every_20_ms(folder: Path) -> None:
    frames = WavLM(find_wavlm(str(folder))).frames(voice(1, 0, 16_000), "clip")
    assert frames.shape == (49, 16)
    assert np.isfinite(frames).all()


@pytest.mark.parametrize("kind", ["wavlm", "wavlm_ecapa"])
def test_attackers_on_its_features_train_save_and_load(kind: str, folder: Path, tmp_path: Path) -> None:
    speech = write_voices(tmp_path / "speech", range(4), 3, seconds=0.7)
    params = TrainAttackerParams(
        channels=8, embedding=8, steps=2, batch=4, crop_seconds=0.5, wavlm=str(folder), lda=4
    )
    attacker = train_attacker(kind, speech, TrainingSetup(params, "original", 1)).attacker
    (tmp_path / "model").mkdir()
    attacker.save(tmp_path / "model")
    again = load_attacker(tmp_path / "model")
    assert again.name == kind
    clip = voice(9, 0, 12_000)
    assert np.array_equal(attacker.embed(clip, "clip"), again.embed(clip, "clip"))


@pytest.mark.parametrize("kind", ["wavlm", "wavlm_ecapa"])
@pytest.mark.parametrize(
    ("where", "reason"),
    [
        ("", "no folder or name is given"),
        ("nowhere/at/all", "no such folder"),
        ("empty", r"config\.json: no such file"),
    ],
)
def test_an_absent_model_is_one_clear_line(
    kind: str, where: str, reason: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("empty").mkdir()
    speech = write_voices(tmp_path / "speech", range(2), 2, seconds=0.5)
    with pytest.raises(ParamsError, match=reason) as error:
        train_attacker(kind, speech, TrainingSetup(TrainAttackerParams(wavlm=where), "original", 1))
    assert "\n" not in str(error.value)
    assert str(error.value).startswith("train_attacker.wavlm: WavLM is not here")


def test_a_hub_model_that_cannot_be_fetched_is_one_clear_line(monkeypatch: pytest.MonkeyPatch) -> None:
    import huggingface_hub

    def refuse(*_: object, **__: object) -> str:
        raise ConnectionError("no route\nto host")

    monkeypatch.setattr(huggingface_hub, "snapshot_download", refuse)
    with pytest.raises(ParamsError, match="owner/model could not be fetched, ConnectionError"):
        find_wavlm("owner/model")


def test_weights_of_another_model_are_refused(folder: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    (other / "model.safetensors").write_bytes((folder / "model.safetensors").read_bytes())
    (other / "config.json").write_text(json.dumps({**CONFIG, "hidden_size": 32}))
    with pytest.raises(InputError, match=r"model\.safetensors: does not fit its config\.json"):
        WavLM(other)
    (other / "config.json").write_text(json.dumps({**CONFIG, "model_type": "hubert"}))
    with pytest.raises(InputError, match=r"config\.json: not the configuration of a WavLM"):
        WavLM(other)


def test_noise_is_not_silently_left_out(folder: Path, tmp_path: Path) -> None:
    speech = write_voices(tmp_path, range(2), 2, seconds=0.5)
    params = TrainAttackerParams(channels=8, embedding=8, steps=1, wavlm=str(folder), noise=0.5)
    with pytest.raises(ParamsError, match=r"train_attacker\.noise: got 0\.5"):
        train_attacker("wavlm_ecapa", speech, TrainingSetup(params, "original", 1))
