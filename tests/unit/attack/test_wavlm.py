"""Attackers on self-supervised features: small networks without training, imported."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("torch")
pytest.importorskip("transformers")

from made_pretrained import import_ecapa, import_wavlm, small_transformer
from made_voices import voice, write_voices
from voxveil.attack.attackers.interface import TrainingSetup
from voxveil.attack.attackers.registry import load_attacker, train_attacker
from voxveil.config.networks import TrainAttackerParams
from voxveil.pretrained.folder import read_model
from voxveil.runtime.errors import InputError, ParamsError, VoxveilError

pytestmark = [pytest.mark.torch, pytest.mark.usefixtures("one_thread")]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return import_wavlm(tmp_path_factory.mktemp("models") / "wavlm")


@pytest.mark.parametrize("kind", ["wavlm", "wavlm_ecapa"])
def test_attackers_on_its_features_train_save_and_load(kind: str, folder: Path, tmp_path: Path) -> None:
    speech = write_voices(tmp_path / "speech", range(4), 3, seconds=0.7)
    params = TrainAttackerParams(
        channels=8, embedding=8, steps=2, batch=4, crop_seconds=0.5, wavlm=str(folder), lda=4
    )
    attacker = train_attacker(kind, speech, TrainingSetup(params, "original", 1)).attacker
    (tmp_path / "model").mkdir()
    attacker.save(tmp_path / "model")
    assert str(folder) not in (tmp_path / "model/model.json").read_text()
    again = load_attacker(tmp_path / "model")
    assert (again.name, again.pretrained) == (kind, read_model(folder).facts())
    clip = voice(9, 0, 12_000)
    assert np.array_equal(attacker.embed(clip, "clip"), again.embed(clip, "clip"))
    (tmp_path / "model/pretrained").rename(tmp_path / "gone")
    with pytest.raises(InputError, match="holds no copy of its imported network; train the attacker again"):
        load_attacker(tmp_path / "model")


@pytest.mark.parametrize("kind", ["wavlm", "wavlm_ecapa"])
@pytest.mark.parametrize(
    ("where", "reason"),
    [
        ("", "is empty; must be the folder of an imported model of kind features"),
        ("microsoft/wavlm-base-plus", "no such folder; 'voxveil model import' writes one"),
        ("plain", "not a pretrained model (no SHA256SUMS); 'voxveil model import' writes one"),
        ("ecapa", "is a model of kind speaker, must be of kind features"),
    ],
)
def test_an_absent_model_is_one_clear_line(
    kind: str, where: str, reason: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    if where == "plain":
        small_transformer(Path("plain"), "WavLM")
    if where == "ecapa":
        import_ecapa(Path("ecapa"))
    speech = write_voices(tmp_path / "speech", range(2), 2, seconds=0.5)
    with pytest.raises(VoxveilError) as error:
        train_attacker(kind, speech, TrainingSetup(TrainAttackerParams(wavlm=where), "original", 1))
    assert reason in str(error.value) and "\n" not in str(error.value)


def test_noise_is_not_silently_left_out(folder: Path, tmp_path: Path) -> None:
    speech = write_voices(tmp_path, range(2), 2, seconds=0.5)
    params = TrainAttackerParams(channels=8, embedding=8, steps=1, wavlm=str(folder), noise=0.5)
    with pytest.raises(ParamsError, match=r"train_attacker\.noise: got 0\.5"):
        train_attacker("wavlm_ecapa", speech, TrainingSetup(params, "original", 1))
