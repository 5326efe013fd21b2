"""Recognizers of SpeechBrain: small ones without training, in published form, against SpeechBrain itself."""

from __future__ import annotations

import io
import pickle
from functools import partial
from pathlib import Path

import numpy as np
import pytest
import yaml

torch = pytest.importorskip("torch")
pytest.importorskip("speechbrain")
sentencepiece = pytest.importorskip("sentencepiece")

from made_voices import voice
from voxveil.pretrained.architectures import load
from voxveil.pretrained.importing import import_model
from voxveil.runtime.errors import InputError
from voxveil.training.placeholders import remove_placeholders

# Its default loader fails with present versions of ruamel.yaml.
READ = partial(pytest.importorskip("hyperpyyaml").load_hyperpyyaml, loader=yaml.Loader)

pytestmark = [pytest.mark.torch, pytest.mark.usefixtures("one_thread")]

CLIP = voice(1, 0, 16_000)
BOTH = """
sample_rate: 16000
n_mels: 20
neurons: 16
outputs: 32
features: !new:speechbrain.lobes.features.Fbank
    sample_rate: !ref <sample_rate>
    n_mels: !ref <n_mels>
normalize: !new:speechbrain.processing.features.InputNormalization
    norm_type: global
enc: !new:speechbrain.lobes.models.CRDNN.CRDNN
    input_shape: [null, null, !ref <n_mels>]
    activation: !name:torch.nn.LeakyReLU
    cnn_blocks: 1
    cnn_channels: (4,)
    cnn_kernelsize: (3, 3)
    rnn_layers: 1
    rnn_neurons: 8
    dnn_blocks: 1
    dnn_neurons: !ref <neurons>
ctc_lin: !new:speechbrain.nnet.linear.Linear
    input_size: !ref <neurons>
    n_neurons: !ref <outputs>
tokenizer: !new:sentencepiece.SentencePieceProcessor
pretrainer: !new:speechbrain.utils.parameter_transfer.Pretrainer
    loadables:
        asr: !ref <asr_model>
        normalizer: !ref <normalize>
        tokenizer: !ref <tokenizer>
"""
ENCODER = (
    BOTH
    + """
asr_model: !new:torch.nn.ModuleList
    - [!ref <enc>, !ref <ctc_lin>]
log_softmax: !new:torch.nn.LogSoftmax
    dim: -1
encoder: !new:speechbrain.nnet.containers.LengthsCapableSequential
    features: !ref <features>
    normalize: !ref <normalize>
    enc: !ref <enc>
    lin: !ref <ctc_lin>
    log_softmax: !ref <log_softmax>
decoding_function: !name:speechbrain.decoders.ctc_greedy_decode
    blank_id: 0
modules:
    encoder: !ref <encoder>
"""
)
DECODER = (
    BOTH
    + """
emb: !new:speechbrain.nnet.embedding.Embedding
    num_embeddings: !ref <outputs>
    embedding_dim: 8
dec: !new:speechbrain.nnet.RNN.AttentionalRNNDecoder
    enc_dim: !ref <neurons>
    input_size: 8
    rnn_type: gru
    attn_type: content
    hidden_size: 8
    attn_dim: 8
    num_layers: 1
seq_lin: !new:speechbrain.nnet.linear.Linear
    input_size: 8
    n_neurons: !ref <outputs>
asr_model: !new:torch.nn.ModuleList
    - [!ref <enc>, !ref <ctc_lin>, !ref <emb>, !ref <dec>, !ref <seq_lin>]
encoder: !new:speechbrain.nnet.containers.LengthsCapableSequential
    features: !ref <features>
    normalize: !ref <normalize>
    enc: !ref <enc>
decoder: !new:speechbrain.decoders.S2SRNNGreedySearcher
    embedding: !ref <emb>
    decoder: !ref <dec>
    linear: !ref <seq_lin>
    bos_index: 1
    eos_index: 1
    min_decode_ratio: 0.0
    max_decode_ratio: 0.2
modules:
    encoder: !ref <encoder>
    decoder: !ref <decoder>
"""
)


def write(folder: Path, settings: str) -> Path:
    """Write a recognizer without training as SpeechBrain saves one."""
    folder.mkdir()
    (folder / "hyperparams.yaml").write_text(settings)
    sentences = [
        "the boat was full of heavy boxes",
        "nobody knew why she came so late",
        "go by the quiet sea",
    ]
    tokenizer = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(sentences * 20),
        model_writer=tokenizer,
        vocab_size=32,
        hard_vocab_limit=False,
        minloglevel=2,
    )
    (folder / "tokenizer.ckpt").write_bytes(tokenizer.getvalue())
    with torch.random.fork_rng():
        torch.manual_seed(2)
        content = READ(settings)
    remove_placeholders()
    model, normalize = content["asr_model"], content["normalize"]
    for value in model.parameters():
        value.data.mul_(3.0)
    torch.save(model.state_dict(), folder / "asr.ckpt")
    normalize(content["features"](torch.from_numpy(CLIP)[None]), torch.ones(1), epoch=0)
    normalize._save(folder / "normalizer.ckpt")
    return folder


def imported(source: Path):
    return load(import_model([str(source)], "speechbrain_asr", source.with_name("out"), licence="MIT"))


@pytest.mark.parametrize(("kind", "settings"), [("EncoderASR", ENCODER), ("EncoderDecoderASR", DECODER)])
def test_words_are_those_that_speechbrain_recognizes(
    kind: str, settings: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import speechbrain.inference.ASR as interfaces

    monkeypatch.setattr("speechbrain.inference.interfaces.load_hyperpyyaml", READ)
    source = write(tmp_path / "source", settings)
    recognizer = imported(source)
    theirs = getattr(interfaces, kind).from_hparams(source=str(source), savedir=str(tmp_path / "saved"))
    remove_placeholders()
    wanted = theirs.transcribe_batch(torch.from_numpy(CLIP)[None], torch.ones(1))[0][0]
    found = recognizer.recognize(CLIP, "clip")
    assert found and found.split() == wanted.split()
    recognizer.recognize(voice(2, 1, 20_000), "other")
    assert recognizer.recognize(CLIP, "clip") == found
    suffixes = {path.suffix for path in (tmp_path / "out").iterdir()}
    assert suffixes == {"", ".json", ".yaml", ".safetensors", ".tokenizer"}


@pytest.mark.parametrize(
    "line",
    [
        "harm: !apply:os.system [touch ran]",
        "harm: !new:os.system [touch ran]",
        "harm: !name:subprocess.run",
        "harm: !!python/object/apply:os.system [touch ran]",
        "harm: !include:other.yaml",
        "harm: !new:speechbrain.nnet.CNN.torch.hub.load {repo_or_dir: x}",
        "harm: !name:speechbrain.nnet.CNN.logging.getLogger",
        "harm: !new:speechbrain.lobes.models.huggingface_transformers.wav2vec2.Wav2Vec2 {source: x}",
        "harm: !new:speechbrain.utils.checkpoints.Checkpointer {checkpoints_dir: ran}",
    ],
)
def test_settings_create_nothing_but_parts_of_recognizers(
    line: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    source = write(tmp_path / "source", ENCODER)
    (source / "hyperparams.yaml").write_text(f"{ENCODER}\n{line}\n")
    with pytest.raises(InputError, match=r"hyperparams\.yaml: names .*must name layers") as caught:
        imported(source)
    assert "\n" not in str(caught.value)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["source"]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (("neurons: 16", "neurons: 24"), r"asr\.safetensors: does not fit hyperparams\.yaml"),
        (("sample_rate: 16000", "sample_rate: 8000"), "takes audio at 8000 Hz, must be 16000 Hz"),
        (("loadables:", "paths:"), "pretrainer must name the parts that have files"),
        (("cnn_blocks: 1", "no_such_option: 1"), r"hyperparams\.yaml: cannot be read"),
        (("decoding_function:", "other:"), "not an EncoderASR"),
    ],
)
def test_what_does_not_fit_is_one_line(change: tuple[str, str], message: str, tmp_path: Path) -> None:
    source = write(tmp_path / "source", ENCODER)
    (source / "hyperparams.yaml").write_text(ENCODER.replace(*change))
    with pytest.raises(InputError, match=message) as caught:
        imported(source)
    assert "\n" not in str(caught.value)
    assert not (tmp_path / "out").exists()


def test_a_missing_part_and_a_pickle_are_refused(tmp_path: Path) -> None:
    source = write(tmp_path / "source", ENCODER)
    (source / "normalizer.ckpt").write_bytes(pickle.dumps({"count": np.ones}, protocol=2))
    with pytest.raises(InputError, match=r"normalizer\.ckpt: holds Python objects"):
        imported(source)
    (source / "normalizer.ckpt").unlink()
    with pytest.raises(InputError, match=r"needs normalizer\.ckpt"):
        imported(source)
