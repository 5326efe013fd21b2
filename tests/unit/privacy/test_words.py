"""Released words: a normal form, a digest of everything they depend on, and nothing beside them."""

from __future__ import annotations

import re
import string

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from voxveil.privacy import Loss, RecognizedWords, Released, Words, recognition_digest
from voxveil.runtime.errors import PrivacyError

DIGEST = "0123456789abcdef"
SETTINGS = {
    "recognizer": "stub 1",
    "weights": "0" * 64,
    "segmentation": {"longest": 30.0},
    "decoding": {"beam": 5, "language": "en"},
    "normalization": {"numbers": "spelled"},
}


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", ()),
        (" \n\t", ()),
        ("Hello, world!", ("hello", "world")),
        ("DON\u2019T 'quote' it's rock 'n' roll", ("don't", "quote", "it's", "rock", "n", "roll")),
        ("well-known e.g. \u2014 this", ("well", "known", "e", "g", "this")),
        ("[00:01.5] word <|en|> 0.97", ("word", "en")),
        ("\u02c8stress\u02d0", ("stress",)),
        (
            "\u00c9t\u00e9 E\u0301t\u00e9 STRASSE stra\u00dfe",
            ("\u00e9t\u00e9", "\u00e9t\u00e9", "strasse", "stra\u00dfe"),
        ),
        ("\ufb01n \u210c", ("fin", "h")),
        ("''' ' '", ()),
        ("\u4f60\u597d", ("\u4f60\u597d",)),
    ],
)
def test_the_words_of_a_text(text: str, words: tuple[str, ...]) -> None:
    assert Words.of(text).sequence == words


@given(text=st.text())
@example("\u0130\u03a3 \u1e9e \u01c5\u0345a")
@example("\u1112\u1161\u11ab'\u11ab a'\u0301")
def test_the_normal_form_is_idempotent(text: str) -> None:
    once = Words.of(text)
    assert Words.of(once.text) == once
    assert Words(once.sequence) == once


@given(text=st.text())
def test_nothing_but_lexical_words_crosses(text: str) -> None:
    released = RecognizedWords(DIGEST).release(text)
    assert isinstance(released, Released) and type(released.value) is Words
    assert type(released.value.sequence) is tuple
    for word in released.value.sequence:
        assert type(word) is str and word == word.lower()
        assert word.replace("'", "").isalpha() and "'" not in (word[0], word[-1])
    assert not hasattr(released.value, "__dict__")


@given(
    words=st.lists(st.text(string.ascii_lowercase, min_size=1), max_size=8),
    gaps=st.lists(
        st.sampled_from([" ", ", ", ". ", " ... ", "\n", " [12.5] ", "? "]), min_size=9, max_size=9
    ),
    capitals=st.booleans(),
)
def test_pauses_and_intonation_of_a_text_do_not_cross(
    words: list[str], gaps: list[str], capitals: bool
) -> None:
    text = "".join(word + gap for word, gap in zip(words, gaps, strict=False))
    assert Words.of(text.upper() if capitals else text).sequence == tuple(words)


class Tagged(str):
    """Text that carries more than its characters."""


@pytest.mark.parametrize(
    "sequence",
    [
        ("Hello",),
        ("two words",),
        ("comma,",),
        ("'quote",),
        ("",),
        ("7",),
        ["list"],
        (1,),
        (Tagged("tagged"),),
        "text",
    ],
)
def test_other_sequences_are_refused(sequence: object) -> None:
    with pytest.raises(PrivacyError, match="word"):
        Words(sequence)  # type: ignore[arg-type]


@pytest.mark.parametrize("text", [None, b"word", ["word"], ("word", 0.5)])
def test_a_recognizer_gives_one_text(text: object) -> None:
    with pytest.raises(PrivacyError, match="must be text"):
        RecognizedWords(DIGEST).release(text)  # type: ignore[arg-type]


def test_the_loss_is_0_given_the_words() -> None:
    loss = RecognizedWords(DIGEST).loss_for()
    assert loss == RecognizedWords(DIGEST).loss_for((3, 4), secret=False) == Loss.from_json(loss.to_json())
    assert (loss.measure, loss.epsilon, loss.unit) == ("pure", 0.0, "utterance")
    assert loss.invariants == {f"recognized_words@{DIGEST}"} and loss.conditional
    assert "errors included" in loss.note
    assert loss.amount == f"epsilon 0 given recognized_words@{DIGEST}"
    assert f"given recognized_words@{DIGEST}" in repr(RecognizedWords(DIGEST).release("a b"))


@pytest.mark.parametrize("digest", ["", "0123", "x" * 16, "A" * 16, "0" * 65])
def test_a_digest_is_hexadecimal(digest: str) -> None:
    with pytest.raises(PrivacyError, match="digest must be"):
        RecognizedWords(digest)


def test_the_digest_follows_every_setting_and_no_order() -> None:
    digest = recognition_digest(**SETTINGS)  # type: ignore[arg-type]
    assert re.fullmatch("[0-9a-f]{16}", digest)
    turned = {**SETTINGS, "decoding": {"language": "en", "beam": 5}}
    assert recognition_digest(**turned) == digest  # type: ignore[arg-type]
    others = {
        "recognizer": "stub 2",
        "weights": "1" * 64,
        "segmentation": {"longest": 20.0},
        "decoding": {"beam": 5, "language": "de"},
        "normalization": {},
    }
    changed = {recognition_digest(**{**SETTINGS, name: value}) for name, value in others.items()}  # type: ignore[arg-type]
    assert len(changed | {digest}) == 6


@pytest.mark.parametrize(
    ("name", "value", "fault"),
    [
        ("recognizer", "", "needs a name"),
        ("weights", "v1", "must be a SHA-256"),
        ("decoding", {"threshold": float("nan")}, "not JSON"),
        ("decoding", {"function": len}, "not JSON"),
    ],
)
def test_settings_without_a_digest_are_refused(name: str, value: object, fault: str) -> None:
    with pytest.raises(PrivacyError, match=fault):
        recognition_digest(**{**SETTINGS, name: value})  # type: ignore[arg-type]
