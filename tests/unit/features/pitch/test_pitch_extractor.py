"""The pitch extractor: what it releases, with which noise, and what it refuses."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from voxveil.config.features import PitchVariant
from voxveil.features.pitch.extractor import AutoencoderCodec, PitchExtractor
from voxveil.features.pitch.model import PitchAutoencoder
from voxveil.features.pitch.scale import hz_to_unit
from voxveil.privacy import PublicNoise, Released, SystemNoise, pitch_mechanism
from voxveil.runtime.errors import InputError, VoxveilError
from voxveil.training.checkpoint import write_trained
from voxveil.training.loop import seeded

pytestmark = pytest.mark.torch
CHANNELS = 4


class Recorder:
    """A seeded source that remembers what was asked of it."""

    secret = False

    def __init__(self) -> None:
        self.asked: list[tuple[tuple[int, ...], float]] = []
        self._source = PublicNoise(1, "recorded")

    def laplace(self, shape: tuple[int, ...], scale: float) -> np.ndarray:
        self.asked.append((shape, scale))
        return self._source.laplace(shape, scale)


def write(folder: Path, mechanism: str, epsilon: float, prefix: str = "") -> Path:
    description: dict = {"kind": "pitch", "mechanism": mechanism, "epsilon": epsilon}
    model: torch.nn.Module = torch.nn.Module()
    if mechanism != "identity":
        with seeded(1, "test"):
            model = PitchAutoencoder(CHANNELS)
        description |= {"channels": CHANNELS, "slope": 0.5, "offset": 0.1}
    write_trained(folder, model, description, [{"step": 1, "loss": 1.0}], {})
    for name in ("model.json", "model.safetensors"):
        (folder / name).rename(folder / f"{prefix}{name}")
    return folder


def f0_of(frames: int) -> np.ndarray:
    f0 = 150 + 40 * np.sin(np.arange(frames) / 9)
    f0[: frames // 4] = 0
    return f0


def test_the_identity_releases_the_unit_scale_itself_without_torch(tmp_path: Path) -> None:
    folder = write(tmp_path, "identity", 0.0)
    released = PitchExtractor.load(folder).release(f0_of(50), SystemNoise())
    assert isinstance(released, Released)
    assert (released.value == hz_to_unit(f0_of(50))).all() and released.value.dtype == np.float32
    assert released.loss.unbounded and released.loss.unit == "utterance"
    code = (
        "import sys, numpy as np; from pathlib import Path\n"
        "from voxveil.features.pitch.extractor import PitchExtractor\n"
        "from voxveil.privacy import SystemNoise\n"
        "PitchExtractor.load(Path(sys.argv[1])).release(np.ones(5) * 100, SystemNoise())\n"
        "print('torch' in sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(folder)], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "False"


@pytest.mark.parametrize("frames", [1, 3, 50, 351])
@pytest.mark.parametrize("epsilon", [1.0, 2.0])
def test_noise_has_scale_ck_over_epsilon_for_the_utterances_own_k(
    tmp_path: Path, frames: int, epsilon: float
) -> None:
    recorder = Recorder()
    extractor = PitchExtractor.load(write(tmp_path, "laplace", epsilon, "pitch-"), "pitch-")
    released = extractor.release(f0_of(frames), recorder)
    assert recorder.asked == [((CHANNELS, frames), CHANNELS * frames / epsilon)]
    assert released.loss.epsilon == epsilon and released.loss.sensitivity == CHANNELS * frames
    assert released.value.shape == (frames,) and released.value.dtype == np.float32
    assert released.value.min() >= 0 and released.value.max() <= 1


def test_noise_is_on_in_train_and_eval_mode_alike(tmp_path: Path) -> None:
    with seeded(1, "test"):
        model = PitchAutoencoder(CHANNELS)
    asked = []
    for mode in (True, False):
        recorder = Recorder()
        extractor = PitchExtractor(
            pitch_mechanism(PitchVariant("laplace", 3.0)), AutoencoderCodec(model.train(mode))
        )
        asked.append((recorder.asked, extractor.release(f0_of(40), recorder).value))
    assert asked[0][0] == asked[1][0] != []
    assert (asked[0][1] == asked[1][1]).all()


@pytest.mark.parametrize(
    "f0", [np.zeros(1), np.zeros(200), np.full(1, 180.0)], ids=["one", "silent", "short"]
)
def test_silent_and_short_inputs_take_the_same_noisy_path(tmp_path: Path, f0: np.ndarray) -> None:
    extractor = PitchExtractor.load(write(tmp_path, "laplace", 10.0))
    recorder = Recorder()
    extractor.release(f0, recorder)
    assert recorder.asked == [((CHANNELS, len(f0)), CHANNELS * len(f0) / 10.0)]


def test_releases_of_one_utterance_differ_and_seeded_ones_repeat(tmp_path: Path) -> None:
    extractor = PitchExtractor.load(write(tmp_path, "laplace", 10.0))
    first, second = (extractor.release(f0_of(60), SystemNoise()).value for _ in range(2))
    assert (first != second).any()
    again = [extractor.release(f0_of(60), PublicNoise(7, "u")).value for _ in range(2)]
    assert (again[0] == again[1]).all()


def test_the_loss_names_unit_sensitivity_and_mechanism(tmp_path: Path) -> None:
    loss = PitchExtractor.load(write(tmp_path, "laplace", 10.0)).loss
    assert (loss["epsilon"], loss["unit"], loss["sensitivity"]) == (10.0, "utterance", f"{CHANNELS} K")
    assert loss["mechanism"] == "laplace_cube"
    plain = PitchExtractor.load(write(tmp_path / "plain", "identity", 0.0)).loss
    assert (plain["epsilon"], plain["sensitivity"]) == ("inf", None)
    json.dumps(loss, allow_nan=False)


def test_what_cannot_be_used_is_named(tmp_path: Path) -> None:
    folder = write(tmp_path, "laplace", 10.0)
    extractor = PitchExtractor.load(folder)
    for f0 in (np.array([np.nan, 100.0]), np.array([-1.0]), np.zeros(0)):
        with pytest.raises(VoxveilError):
            extractor.release(f0, SystemNoise())
    with pytest.raises(InputError, match=r"nowhere/model\.json"):
        PitchExtractor.load(tmp_path / "nowhere")
    content = json.loads((folder / "model.json").read_text())
    for change, word in (({"kind": "content"}, "format 1"), ({"format": 2}, "format 1")):
        (folder / "model.json").write_text(json.dumps({**content, **change}))
        with pytest.raises(InputError, match=word):
            PitchExtractor.load(folder)
    (folder / "model.json").write_text(json.dumps({k: v for k, v in content.items() if k != "slope"}))
    with pytest.raises(InputError, match="slope is missing"):
        PitchExtractor.load(folder)
    (folder / "model.json").write_text(json.dumps({**content, "channels": CHANNELS + 1}))
    with pytest.raises(InputError, match="does not fit"):
        PitchExtractor.load(folder)
    (folder / "model.safetensors").unlink()
    with pytest.raises(InputError, match="no such file"):
        PitchExtractor.load(folder)
    with pytest.raises(InputError, match="does not go with"):
        PitchExtractor(pitch_mechanism(PitchVariant("laplace", 1.0)))
