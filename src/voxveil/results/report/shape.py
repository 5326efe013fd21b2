"""Schema check of JSON files such as ``summary.json``; the error names the first deviation."""

from __future__ import annotations

import math
import reprlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from voxveil.metrics.attacked import SHOWN
from voxveil.runtime.errors import IncompleteInputError

__all__ = [
    "EPSILON",
    "FLAG",
    "METRIC",
    "NUMBER",
    "PAIR",
    "SOME",
    "SUMMARY",
    "TEXT",
    "Each",
    "Kind",
    "Maybe",
    "check_shape",
]


@dataclass(frozen=True)
class Kind:
    """A plain value.

    Attributes:
        words: What it must be.
        test: Whether it is.
    """

    words: str
    test: Callable[[Any], bool]


@dataclass(frozen=True)
class Maybe:
    """Null, or of a form."""

    form: Any


@dataclass(frozen=True)
class Each:
    """An object of any names whose values are of a form."""

    form: Any


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _is_histogram(value: Any) -> bool:
    return isinstance(value, list) and all(_is_number(n) and n >= 0 for n in value) and sum(value) > 0


def _is_pair(value: Any) -> bool:
    return isinstance(value, list) and len(value) == 2 and all(map(_is_number, value))


TEXT = Kind("a text", lambda value: isinstance(value, str))
FLAG = Kind("true or false", lambda value: isinstance(value, bool))
NUMBER = Kind("a finite number", _is_number)
COUNT = Kind("a whole number of 0 or more", _is_count)
SOME = Kind("a whole number of 1 or more", lambda value: _is_count(value) and value > 0)
HISTOGRAM = Kind("a list of counts, not all 0", _is_histogram)
PAIR = Kind("two finite numbers", _is_pair)
EPSILON = Kind(
    'a number of 0 or more, or "inf"', lambda value: value == "inf" or (_is_number(value) and value >= 0)
)

#: A metric of ``voxveil evaluate``.
METRIC = {
    "value": Maybe(NUMBER),
    "unit": TEXT,
    "note": Maybe(TEXT),
    "ci95": Maybe(PAIR),
    "null95": Maybe(PAIR),
}
_ERRORS = {"value": Maybe(NUMBER), "ci95": Maybe(PAIR), "reason": Maybe(TEXT)}
_ATTACK = {
    "attacker": TEXT,
    "scenario": TEXT,
    "training": TEXT,
    "enrolment": TEXT,
    "trial": TEXT,
    "metrics": dict.fromkeys(SHOWN, METRIC),
    "trials": {"target": SOME, "nontarget": SOME, "speakers": Maybe(COUNT)},
    "references": Maybe(COUNT),
    "inputs": Maybe(COUNT),
    "rank_histogram": Maybe(HISTOGRAM),
    "warnings": [{"code": TEXT, "text": TEXT}],
}
#: What the report and the pages of the papers read of a ``summary.json``.
SUMMARY = {
    "kind": TEXT,
    "scale": TEXT,
    "replicates": COUNT,
    "composition": {"pitch_conversion": FLAG},
    "corpus": {"name": TEXT, "synthetic": FLAG, "public": FLAG, "revision": Maybe(TEXT)},
    "promise": {
        "streams": Each({"epsilon": EPSILON, "unit": TEXT, "mechanism": TEXT, "sensitivity": Maybe(PAIR)}),
        "utterance": {"epsilon": EPSILON},
        "passing": TEXT,
    },
    "attacks": [_ATTACK],
    "words_alone?": Maybe(_ATTACK),
    "utility": {
        "per": _ERRORS,
        "wer": Maybe(_ERRORS),
        "pitch?": Maybe({"value": Maybe(NUMBER), "ci95": Maybe(PAIR)}),
    },
}


def check_shape(path: Path, content: Any, form: Any, where: str = "", *, stage: str = "evaluate") -> None:
    """Raise an error if content does not have a form; additional keys are ignored.

    Args:
        path: Its file, for the message.
        content: What the file holds.
        form: An object of names with a form each (``NAME?`` may be absent), a list of one form, or a class
            of this module.
        where: Place in the file, dotted.
        stage: What makes it anew, for the message.

    Raises:
        IncompleteInputError: Naming the file, the place, what is there and what must be.
    """
    if isinstance(form, Maybe):
        if content is not None:
            check_shape(path, content, form.form, where, stage=stage)
    elif isinstance(form, Kind):
        if not form.test(content):
            raise _odd(path, where, content, form.words, stage)
    elif isinstance(form, list):
        if not isinstance(content, list):
            raise _odd(path, where, content, "a list", stage)
        for number, value in enumerate(content):
            check_shape(path, value, form[0], f"{where}[{number}]", stage=stage)
    elif not isinstance(content, Mapping):
        raise _odd(path, where, content, "an object", stage)
    elif isinstance(form, Each):
        for name, value in content.items():
            check_shape(path, value, form.form, f"{where}.{name}", stage=stage)
    else:
        for key, inner in form.items():
            name = key.removesuffix("?")
            dotted = f"{where}.{name}".lstrip(".")
            if name not in content:
                if name != key:
                    continue
                raise IncompleteInputError(f"{path}: {dotted} is missing; run its {stage} stage again")
            check_shape(path, content[name], inner, dotted, stage=stage)


def _odd(path: Path, where: str, content: Any, words: str, stage: str) -> IncompleteInputError:
    return IncompleteInputError(
        f"{path}: {where or 'it'} must be {words}, got {reprlib.repr(content)}; run its {stage} stage again"
    )
