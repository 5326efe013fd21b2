"""The conformer: learns by heart, is stored whole, and its beam search is the literal one."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import partial
from itertools import product
from pathlib import Path

import numpy as np
import pytest

torch = pytest.importorskip("torch")
pytestmark = [pytest.mark.torch, pytest.mark.usefixtures("one_thread")]

from made_dictation import SMALL, TINY, dictation, texts
from voxveil.audio.frames import frame_count
from voxveil.audio.mel import log_mel
from voxveil.config.compose import compose
from voxveil.config.sections import section_of
from voxveil.research.asr import train
from voxveil.research.asr.network import AsrNetwork, AsrSize, centred_mel, encoded_frames
from voxveil.research.asr.recognizer import Recognizer, collapse
from voxveil.research.asr.tokens import BEGIN, BLANK, END, Tokens
from voxveil.research.asr.train import TrainedRecognizer, train_recognizer
from voxveil.research.params import AsrParams, ProbeParams
from voxveil.runtime.errors import InputError
from voxveil.training.loop import TrainingError, seeded
from voxveil.utility.edits import count_edits

LETTERS = (3, 4, 5)
SIZE = AsrSize(6, 8, 2, 1, 1, 8, 3, 0.0)


@pytest.fixture(scope="module")
def learnt() -> TrainedRecognizer:
    utterances, audio = dictation(3)
    return train_recognizer(utterances, audio.__getitem__, SMALL, name="asr", seed=1)


def untrained(seed: int = 1, size: AsrSize = SIZE, sharpness: float = 1.0) -> AsrNetwork:
    with seeded(seed, "test"):
        network = AsrNetwork(size)
    with torch.no_grad():
        for layer, marks in ((network.ctc, (BEGIN, END)), (network.next, (BLANK, BEGIN))):
            layer.w.weight *= sharpness
            # A trained network never names these.
            layer.w.bias[list(marks)] = -30.0
    return network.eval()


def test_learns_a_few_utterances_by_heart(learnt: TrainedRecognizer) -> None:
    utterances, audio = dictation(3)
    for beam in (0, 4):
        heard = [learnt.recognizer.transcribe(audio[item.id], item.id, beam=beam) for item in utterances]
        pairs = zip(texts(utterances), heard, strict=True)
        # Another machine rounds otherwise: a letter of 39 may differ.
        assert sum(count_edits(list(said), list(told)).errors for said, told in pairs) <= 1
    assert (learnt.utterances, learnt.left_out, learnt.held_out, learnt.step) == (3, 0, 0, SMALL.steps)
    assert {"loss", "ctc", "attention"} < set(learnt.curve[-1])


def test_is_read_back_as_it_was(learnt: TrainedRecognizer, tmp_path: Path) -> None:
    utterances, audio = dictation(3)
    learnt.recognizer.save(tmp_path, {"trained_on": "original"})
    assert sorted(path.name for path in tmp_path.iterdir()) == ["model.json", "model.safetensors"]
    again = Recognizer.load(tmp_path)
    before, after = learnt.recognizer._network.state_dict(), again._network.state_dict()
    assert all(torch.equal(value, after[name]) for name, value in before.items())
    first = audio[utterances[0].id]
    assert again.transcribe(first, beam=2) == learnt.recognizer.transcribe(first, beam=2)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"kind": "ecapa"}, "not a conformer"),
        ({"tokens": {"characters": ["ab"]}}, "tokens must be characters or pieces"),
        ({"tokens": {"characters": ["a"]}}, "outputs for 4 tokens"),
        ({"tokens": {"pieces": "tokens.model"}}, "tokens.model: not a SentencePiece model"),
        ({"sizes": {"width": 8}}, "its sizes do not describe"),
    ],
)
def test_what_does_not_fit_is_refused(change: dict, message: str, tmp_path: Path) -> None:
    Recognizer(untrained(), Tokens("abc")).save(tmp_path)
    content = json.loads((tmp_path / "model.json").read_text())
    (tmp_path / "model.json").write_text(json.dumps({**content, **change}))
    (tmp_path / "tokens.model").write_bytes(b"no model")
    with pytest.raises(InputError, match=message):
        Recognizer.load(tmp_path)


def test_resumed_training_ends_where_an_uninterrupted_one_does(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    utterances, audio = dictation(6)
    params = replace(TINY, steps=4, dropout=0.1, speeds="1,0.9,1.1", spec_augment=True, patience=4)
    whole = train_recognizer(utterances, audio.__getitem__, params, name="asr", seed=1)

    class Killed(Exception):
        pass

    def killed(step: int, values: dict[str, float]) -> None:
        if step == 3:
            raise Killed

    # A checkpoint at every point of the curve.
    monkeypatch.setattr(train, "Plan", partial(train.Plan, checkpoint_seconds=0.0))
    options = {"name": "asr", "seed": 1, "checkpoints": tmp_path}
    with pytest.raises(Killed):
        train_recognizer(utterances, audio.__getitem__, params, **options, sink=killed)
    assert (tmp_path / "checkpoint.safetensors").is_file()
    rest = train_recognizer(utterances, audio.__getitem__, params, **options)
    assert rest.curve == whole.curve
    assert rest.held_out == 2
    assert rest.step == whole.step
    left, right = (each.recognizer._network.state_dict() for each in (whole, rest))
    assert all(torch.equal(value, right[name]) for name, value in left.items())


def literal_search(network: AsrNetwork, encoded: torch.Tensor, beam: int, weight: float) -> tuple[int, ...]:
    """Return the best transcript: CTC by going through all paths, attention by whole prefixes."""
    log_probs, frames = network.ctc_log_probs(encoded)[0], encoded.shape[1]
    paths: dict[tuple[int, ...], list[torch.Tensor]] = {}
    for path in product((BLANK, *LETTERS), repeat=frames):
        likely = sum(log_probs[place, token] for place, token in enumerate(path))
        paths.setdefault(tuple(collapse(list(path))), []).append(likely)

    def together(parts: list[torch.Tensor]) -> float:
        return float(torch.logsumexp(torch.stack(parts), 0)) if parts else float("-inf")

    def whole(spelt: tuple[int, ...]) -> float:
        return together(paths.get(spelt, []))

    def beginning(spelt: tuple[int, ...]) -> float:
        return together(
            [one for key, all_of in paths.items() if key[: len(spelt)] == spelt for one in all_of]
        )

    alive: list[tuple[tuple[int, ...], float]] = [((), 0.0)]
    ended: list[tuple[float, tuple[int, ...]]] = []
    for step in range(1, frames + 1):
        grown = []
        for spelt, before in alive:
            decoded, _ = network.transformer.decode(torch.tensor([[BEGIN, *spelt]]), encoded)
            after = torch.log_softmax(network.next(decoded)[0, -1], 0)
            for token in (END, *LETTERS):
                ahead = before + float(after[token])
                score = (1 - weight) * ahead
                if weight:
                    score += weight * (whole(spelt) if token == END else beginning((*spelt, token)))
                grown.append((score / step, (*spelt, token), ahead))
        grown = sorted(grown, reverse=True)[:beam]
        ended += [(score, spelt[:-1]) for score, spelt, _ in grown if spelt[-1] == END]
        alive = [(spelt, ahead) for _, spelt, ahead in grown if spelt[-1] != END]
        if len(ended) >= beam:
            break
    else:
        # SpeechBrain ends what is unfinished after the last step in place of its last token.
        ended += [(score, spelt[:-1]) for score, spelt, _ in grown]
    return max(ended)[1]


@pytest.mark.parametrize("weight", [0.0, 0.4])
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_beam_search_is_the_literal_one(seed: int, weight: float) -> None:
    network = untrained(seed, sharpness=4.0)
    recognizer = Recognizer(network, Tokens("abc"))
    audio = np.random.default_rng(seed).normal(0, 0.1, 3 * 640).astype(np.float32)
    with torch.inference_mode():
        mel, frames = centred_mel(torch.from_numpy(audio)[None], torch.tensor([len(audio)]))
        encoded, lengths = network.encode(network.normalized(mel, frames), frames)
        assert encoded.shape[1] == int(lengths) == encoded_frames(frame_count(len(audio))) == 4
        best = literal_search(network, encoded, 4, weight)
    assert recognizer.transcribe(audio, beam=4, ctc_weight=weight) == recognizer.tokens.decode(best)


def test_greedy_ctc_is_the_literal_collapse() -> None:
    for path in product((BLANK, 3, 4), repeat=5):
        literal = []
        for place, token in enumerate(path):
            if token != BLANK and (place == 0 or path[place - 1] != token):
                literal.append(token)
        assert collapse(list(path)) == literal


def test_input_is_centred_and_padding_changes_nothing() -> None:
    rng = np.random.default_rng(3)
    short, long = (torch.from_numpy(rng.normal(0, 0.1, n).astype(np.float32)) for n in (4_000, 8_000))
    samples = torch.tensor([4_000, 8_000])
    mel, frames = centred_mel(torch.nn.utils.rnn.pad_sequence([short, long], batch_first=True), samples)
    assert frames.tolist() == [26, 51]
    alone = log_mel(short[None])[0]
    torch.testing.assert_close(mel[0, :26], alone - alone.mean(), atol=1e-4, rtol=1e-4)
    assert not mel[0, 26:].any()
    louder, _ = centred_mel(3 * short[None], samples[:1])
    torch.testing.assert_close(louder[0], mel[0, :26], atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize("samples", [1, 100, 2_399])
def test_very_short_speech_has_a_transcript(samples: int) -> None:
    recognizer = Recognizer(untrained(), Tokens("abc"))
    for beam in (0, 3):
        assert set(recognizer.transcribe(np.full(samples, 0.1, np.float32), beam=beam)) <= set("abc")


@pytest.mark.parametrize(
    ("audio", "message"),
    [
        (np.zeros(0, np.float32), "at least 1"),
        (np.full(9, np.nan, np.float32), "finite"),
        (np.zeros(16_000 * 100, np.float32), "x: 100 s, a recognizer hears 99 s at most"),
    ],
)
def test_bad_audio_is_refused(audio: np.ndarray, message: str) -> None:
    with pytest.raises(InputError, match=message):
        Recognizer(untrained(), Tokens("abc")).transcribe(audio, "x")


def test_full_size_takes_a_step_and_transcribes(root: Path) -> None:
    """params/librispeech.yaml, on what two utterances say."""
    params = compose(root / "params/librispeech.yaml")
    probe, asr = section_of(params, ProbeParams), section_of(params, AsrParams)
    assert probe.recognizer == "conformer"
    assert probe.largest_errors < 100
    with torch.device("meta"):
        full = AsrNetwork(
            AsrSize(
                asr.pieces + 3,
                asr.width,
                asr.heads,
                asr.encoder_layers,
                asr.decoder_layers,
                asr.feedforward,
                asr.kernel,
                asr.dropout,
            )
        )
    assert 20e6 < sum(p.numel() for p in full.parameters()) < 60e6
    utterances, audio = dictation(3)
    one = replace(asr, steps=1, patience=1, pieces=0, workers=2, batch_seconds=2.5)
    trained = train_recognizer(utterances, audio.__getitem__, one, name="asr", seed=1)
    assert np.isfinite(trained.curve[-1]["loss"])
    assert np.isfinite(trained.curve[-1]["held_out"])
    heard = trained.recognizer.transcribe(audio[utterances[0].id], beam=2)
    assert set(heard) <= set("".join(texts(utterances)))


def test_a_loss_that_is_not_finite_stops(tmp_path: Path) -> None:
    utterances, audio = dictation(3)
    wild = replace(TINY, steps=20, learning_rate=1e30)
    with pytest.raises(TrainingError, match="asr: the loss is"):
        train_recognizer(utterances, audio.__getitem__, wild, name="asr", seed=1)
