"""Transcripts in another case, or with punctuation, scored near 100 % word errors and passed as poor
utility.

Seen in https://github.com/Voice-Privacy-Challenge/Voice-Privacy-Challenge-2022/issues/12 and
https://github.com/Voice-Privacy-Challenge/Voice-Privacy-Challenge-2020/issues/3.
"""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from voxveil.runtime.errors import InputError
from voxveil.stages import transcribe
from voxveil.utility.edits import ErrorRate, count_edits, error_rate
from voxveil.utility.transcripts import normalize_words


def rate(pairs: list[tuple[str, str]], *, normalized: bool = True) -> ErrorRate:
    words = normalize_words if normalized else str.split
    edits = {f"u{i}": count_edits(words(said), words(heard)) for i, (said, heard) in enumerate(pairs)}
    speakers = {name: f"s{i % 3}" for i, name in enumerate(edits)}
    return error_rate(edits, speakers, replicates=20, seed=1)


def test_case_and_punctuation_are_no_errors() -> None:
    assert rate([("HELLO, World.", "hello world")]).value == 0
    assert rate([("HELLO, World.", "hello world")], normalized=False).value == 100
    assert rate([("It\u2019s \u201clate\u201d \u2014 isn't it?", "IT'S LATE ISN'T IT")]).value == 0


def stage(kind: str) -> SimpleNamespace:
    return SimpleNamespace(label="transcribe[original]", system=SimpleNamespace(kind=kind))


def test_absurd_errors_on_original_speech_stop_the_run() -> None:
    """Whatever the reason is (other people's references, another language), it is no result."""
    wrong = rate([("ONE TWO THREE FOUR", "five six seven eight")] * 6)
    assert wrong.value == 100
    with pytest.raises(
        InputError, match=r"transcribe\[original\]: 100\.0 % word errors on unprotected speech"
    ):
        transcribe._require_sane(stage("original"), wrong, "word errors", noisy=False)


def test_the_same_errors_on_anonymized_speech_are_a_result() -> None:
    wrong = rate([("ONE TWO THREE FOUR", "five six seven eight")] * 6)
    transcribe._require_sane(stage("anonymized"), wrong, "word errors", noisy=False)
