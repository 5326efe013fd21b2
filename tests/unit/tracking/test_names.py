"""Names and values: what MLflow takes, and what becomes of the rest.

Seen in https://github.com/mlflow/mlflow/issues/16555, https://github.com/mlflow/mlflow/issues/9425 and
https://github.com/mlflow/mlflow/issues/10512.
"""

from __future__ import annotations

import math
import re

from hypothesis import given
from hypothesis import strategies as st

from voxveil.metrics.catalogue import METRICS, metric_key
from voxveil.tracking.mlflow_names import finite, flat_params, mlflow_name, short

ALLOWED = re.compile(r"[A-Za-z0-9_./ -]+")


@given(st.text(min_size=1, max_size=60))
def test_every_name_becomes_an_allowed_one(name: str) -> None:
    mapped = mlflow_name(name)
    assert ALLOWED.fullmatch(mapped)
    assert mlflow_name(mapped) == mapped


def test_allowed_names_stay() -> None:
    for name in METRICS:
        for scenario in ("semi_informed", "ignorant"):
            key = metric_key(name, "ecapa", scenario)
            assert mlflow_name(key) == key


def test_refused_signs_are_told_apart() -> None:
    signs = ["a[1]", "a(1)", "a@1", "a=1", "a%1", "a:1", "aε1"]
    assert len({mlflow_name(name) for name in signs}) == len(signs)


def test_infinity_and_nan_are_no_metrics() -> None:
    values = {"a": 1.5, "b": math.inf, "c": -math.inf, "d": math.nan, "e": 0}
    assert finite(values) == {"a": 1.5, "e": 0.0}


def test_params_are_dotted_and_long_texts_are_left_out() -> None:
    content = {"base": {"seed": 17, "rate": 0.002}, "long": "x" * 501, "list": "y" * 500}
    assert flat_params(content) == {"base.seed": "17", "base.rate": "0.002", "list": "y" * 500}


def test_tags_say_where_they_were_cut() -> None:
    assert short("a" * 5000) == "a" * 5000
    assert short("a" * 5001).endswith("...")
    assert len(short("a" * 9000)) == 5000
