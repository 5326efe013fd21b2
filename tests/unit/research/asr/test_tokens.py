"""Tokens spell what they were learnt from, and are stored without pickle."""

from __future__ import annotations

from pathlib import Path

import pytest

from voxveil.corpus.sentences import PUBLIC_SENTENCES
from voxveil.research.asr.tokens import BEGIN, BLANK, END, Tokens, learn_tokens
from voxveil.runtime.errors import InputError

SENTENCES = [str(sentence) for sentence in PUBLIC_SENTENCES]


def learnt(pieces: int) -> Tokens:
    if pieces:
        pytest.importorskip("sentencepiece")
    return learn_tokens(SENTENCES, pieces)


@pytest.mark.parametrize("pieces", [0, 60])
def test_training_transcripts_are_spelt_and_read_back(pieces: int, tmp_path: Path) -> None:
    tokens = learnt(pieces)
    again = Tokens.load(tmp_path, tokens.save(tmp_path), "model.json")
    assert len(again) == len(tokens)
    for sentence in SENTENCES:
        spelt = tokens.encode(sentence)
        assert all(3 <= number < len(tokens) for number in spelt)
        normal = sentence.lower().strip(".!?").replace(",", "")
        assert tokens.decode(spelt) == again.decode([BEGIN, *spelt, END, BLANK]) == normal
    assert again.encode(SENTENCES[0]) == tokens.encode(SENTENCES[0])


def test_pieces_are_longer_than_characters_and_no_more_than_asked_for() -> None:
    characters, pieces = learnt(0), learnt(60)
    assert len(pieces) <= 63
    lengths = [sum(len(tokens.encode(each)) for each in SENTENCES) for tokens in (characters, pieces)]
    assert lengths[1] < 0.8 * lengths[0]
    assert (characters.kind, pieces.kind) == ("characters", "pieces")


def test_pieces_are_the_same_twice() -> None:
    sentencepiece = pytest.importorskip("sentencepiece")
    assert sentencepiece.__version__
    assert learnt(60)._pieces == learnt(60)._pieces


def test_unknown_letters_are_left_out() -> None:
    for tokens in (learn_tokens(["a bad cab"], 0), learnt(60)):
        assert tokens.decode(tokens.encode("\u4f60bad\u597d")) == "bad"


@pytest.mark.parametrize(
    ("texts", "pieces", "message"),
    [
        (["", "..."], 0, "no training transcript has a word"),
        (["abcdefgh"], 5, r"asr\.pieces: 5 pieces for 9 characters"),
    ],
)
def test_what_cannot_be_learnt_is_refused(texts: list[str], pieces: int, message: str) -> None:
    with pytest.raises(InputError, match=message):
        learn_tokens(texts, pieces)


@pytest.mark.parametrize("data", [b"", b"broken"])
def test_a_damaged_model_is_refused(data: bytes, tmp_path: Path) -> None:
    pytest.importorskip("sentencepiece")
    (tmp_path / "tokens.model").write_bytes(data)
    with pytest.raises(InputError, match=r"tokens\.model"):
        Tokens.load(tmp_path, {"pieces": "tokens.model"}, "model.json")
