"""Outliers in naturalness and words: the rule, and speech replaced by noise."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from voxveil.audio.files import encode_flac
from voxveil.runtime.errors import InputError
from voxveil.utility.naturalness import find_outliers, naturalness_of

VALUES = st.dictionaries(st.text("abc", min_size=1, max_size=3), st.floats(1, 5), min_size=1, max_size=20)


def literal(values: dict[str, float], least: float) -> set[str]:
    """Utterances at least 3.5 robust standard deviations below the median, in plain Python."""
    numbers = sorted(values.values())
    half = len(numbers) // 2
    median = numbers[half] if len(numbers) % 2 else (numbers[half - 1] + numbers[half]) / 2
    apart = sorted(abs(number - median) for number in numbers)
    mad = apart[half] if len(apart) % 2 else (apart[half - 1] + apart[half]) / 2
    return {name for name, value in values.items() if median - value >= 3.5 * max(least, 1.4826 * mad)}


@given(VALUES)
def test_outliers_are_those_of_a_literal_reading(values: dict[str, float]) -> None:
    found = find_outliers(values, worse="lower", least_spread=0.1)
    assert set(found) == literal(values, 0.1)
    assert [values[name] for name in found] == sorted(values[name] for name in found)
    mirrored = find_outliers({n: -v for n, v in values.items()}, worse="higher", least_spread=0.1)
    assert set(mirrored) == set(found)


def test_equal_values_have_no_outlier() -> None:
    assert find_outliers(dict.fromkeys("abcdef", 3.0), worse="lower", least_spread=0.1) == []
    assert find_outliers({}, worse="lower", least_spread=0.1) == []


def test_one_of_forty_replaced_by_noise_is_named(imported: Callable[[str], Path], librispeech: Path) -> None:
    soundfile = pytest.importorskip("soundfile")
    pytest.importorskip("distillmos")
    folder = str(imported("distillmos"))
    values = {}
    for path in sorted((librispeech / "test-mini").rglob("*.flac"))[:40]:
        audio = soundfile.read(path, dtype="float32")[0][: 3 * 16000]
        if len(values) == 17:
            replaced = path.stem
            audio = np.random.default_rng(5).normal(0, 0.05, len(audio)).astype(np.float32)
        values[path.stem] = naturalness_of((folder, path.stem, encode_flac(audio, path.stem)[0]))
    assert find_outliers(values, worse="lower", least_spread=0.1)[0] == replaced


def test_a_model_of_another_kind_is_refused(imported: Callable[[str], Path]) -> None:
    folder = str(imported("campplus"))
    with pytest.raises(InputError, match=r"transcribe\.naturalness: .* is a model of kind speaker"):
        naturalness_of((folder, "u", b""))
