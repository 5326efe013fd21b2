"""Networks of transformers: small ones without training, in the files of hub models, against transformers."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pytest

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

from made_pretrained import LETTERS, small_ctc, small_transformer
from made_voices import voice
from voxveil.pretrained.architectures import load
from voxveil.pretrained.folder import PretrainedModel
from voxveil.pretrained.importing import import_model
from voxveil.runtime.errors import InputError

pytestmark = [pytest.mark.torch, pytest.mark.usefixtures("one_thread")]

CLIP = voice(1, 0, 16_000)


def imported(source: Path, architecture: str) -> PretrainedModel:
    return import_model([str(source)], architecture, source.with_name("out"), licence="MIT")


def reference(source: Path, head: str, **options: object):
    """Return what transformers computes of the clip."""
    network = getattr(transformers, head).from_pretrained(source).eval()
    values = transformers.Wav2Vec2FeatureExtractor.from_pretrained(source)(
        CLIP, sampling_rate=16_000, return_tensors="pt"
    )
    with torch.no_grad():
        return network(values.input_values, **options)


@pytest.mark.parametrize("family", ["WavLM", "Hubert", "Wav2Vec2"])
def test_features_are_the_mean_over_layers_every_20_ms(family: str, tmp_path: Path) -> None:
    source = small_transformer(tmp_path / "source", family)
    network = load(imported(source, "transformers_features"))
    frames = network.frames(CLIP, "clip")
    assert frames.shape == (49, 16) and network.size == 16
    assert network.stride_seconds == pytest.approx(0.02)
    layers = reference(source, f"{family}Model", output_hidden_states=True).hidden_states[1:]
    np.testing.assert_allclose(frames, torch.stack(layers).mean(0)[0].numpy(), atol=1e-5)


def test_words_are_those_that_transformers_decodes(tmp_path: Path) -> None:
    source = small_ctc(tmp_path / "source")
    found = load(imported(source, "transformers_ctc")).recognize(CLIP, "clip")
    best = reference(source, "Wav2Vec2ForCTC").logits.argmax(dim=-1)[0]
    tokenizer = transformers.Wav2Vec2CTCTokenizer(str(source / "vocab.json"))
    assert found.split() == re.sub("<[^>]*>", "", tokenizer.decode(best)).split()


def test_equal_tokens_are_one_and_a_blank_parts_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    network = load(imported(small_ctc(tmp_path / "source"), "transformers_ctc"))
    a, blank, gap, unknown = (LETTERS.index(token) for token in ("A", "<pad>", "|", "<unk>"))
    path = torch.tensor([a, a, blank, a, gap, gap, unknown, blank, a])
    logits = torch.nn.functional.one_hot(path, len(LETTERS)).float()[None]
    result = transformers.modeling_outputs.CausalLMOutput(logits=logits)
    monkeypatch.setattr(network, "_run", lambda *_: result)
    assert network.recognize(CLIP, "clip") == "AA A"


def test_an_emotion_has_the_labels_of_the_configuration(tmp_path: Path) -> None:
    names = {0: "calm", 1: "angry", 2: "happy"}
    source = small_transformer(tmp_path / "source", head="ForSequenceClassification", id2label=names)
    judge = load(imported(source, "transformers_emotion"))
    found = judge.classify(CLIP, "clip")
    shares = reference(source, "Wav2Vec2ForSequenceClassification").logits[0].softmax(-1).numpy()
    assert list(found.probabilities) == ["calm", "angry", "happy"]
    np.testing.assert_allclose(list(found.probabilities.values()), shares, atol=1e-5)
    assert sum(found.probabilities.values()) == pytest.approx(1.0)
    assert found.label == names[int(shares.argmax())]


def test_weights_of_a_head_are_left_out_of_features_and_missing_ones_are_refused(tmp_path: Path) -> None:
    source = small_ctc(tmp_path / "source")
    network = load(imported(source, "transformers_features"))
    assert network.frames(CLIP, "clip").shape == (49, 16)
    config = json.loads((source / "config.json").read_text())
    (source / "config.json").write_text(json.dumps({**config, "id2label": {"0": "calm", "1": "angry"}}))
    with pytest.raises(InputError, match=r"model\.safetensors: weights of another architecture"):
        import_model([str(source)], "transformers_emotion", tmp_path / "other", licence="MIT")
    assert not (tmp_path / "other").exists()


def test_an_older_checkpoint_of_torch_is_read_without_pickled_objects(tmp_path: Path) -> None:
    from safetensors.torch import load_file

    source = small_transformer(tmp_path / "source")
    wanted = load(imported(source, "transformers_features")).frames(CLIP, "clip")
    names = {"parametrizations.weight.original0": "weight_g", "parametrizations.weight.original1": "weight_v"}
    state = {}
    for name, value in load_file(source / "model.safetensors").items():
        for new, old in names.items():
            name = name.replace(new, old)
        state[f"wav2vec2.{name}"] = value
    (source / "model.safetensors").unlink()
    torch.save(state, source / "pytorch_model.bin")
    again = import_model([str(source)], "transformers_features", tmp_path / "again", licence="MIT")
    np.testing.assert_array_equal(load(again).frames(CLIP, "clip"), wanted)
    torch.save({"weights": Path("x")}, source / "pytorch_model.bin")
    with pytest.raises(InputError, match="holds Python objects"):
        import_model([str(source)], "transformers_features", tmp_path / "third", licence="MIT")


@pytest.mark.parametrize(
    ("file", "change", "message"),
    [
        (
            "config.json",
            {"model_type": "bert"},
            "model_type is 'bert', must be one of wav2vec2,",
        ),
        ("config.json", {"hidden_size": 32}, r"model\.safetensors: weights of another architecture"),
        ("config.json", {"conv_stride": [5]}, "not sizes of a Wav2Vec2"),
        ("preprocessor_config.json", {"sampling_rate": 8000}, "takes audio at 8000 Hz, must be 16000 Hz"),
        ("preprocessor_config.json", None, r"needs preprocessor_config\.json"),
        ("model.safetensors", None, r"needs model\.safetensors or pytorch_model\.bin"),
        ("vocab.json", {"eng": {"A": 1}}, "must hold the number of each token, of one language"),
        ("vocab.json", {"H": 12}, "13 tokens do not fit vocab_size"),
    ],
)
def test_what_does_not_fit_is_one_line(file: str, change: dict | None, message: str, tmp_path: Path) -> None:
    source = small_ctc(tmp_path / "source")
    if change is None:
        (source / file).unlink()
    else:
        content = json.loads((source / file).read_text())
        (source / file).write_text(json.dumps({**content, **change}))
    with pytest.raises(InputError, match=message) as caught:
        imported(source, "transformers_ctc")
    assert "\n" not in str(caught.value)
    assert not (tmp_path / "out").exists()


def test_outputs_without_names_are_no_emotions(tmp_path: Path) -> None:
    source = small_transformer(
        tmp_path / "source", head="ForSequenceClassification", id2label={0: "same", 1: "same"}
    )
    with pytest.raises(InputError, match="must name two or more different emotions"):
        imported(source, "transformers_emotion")
