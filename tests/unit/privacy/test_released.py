"""Only a mechanism makes a Released value; a bare one is refused at run time and by the type checker."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from voxveil.privacy import Identity, LaplaceSimplex, Loss, Released, SystemNoise, require_released
from voxveil.runtime.errors import PrivacyError

LOSS = Loss("pure", 1.0, "vector", 2.0, "laplace_l1", "2")


@pytest.mark.parametrize("key", [None, object(), "key", True])
def test_a_released_value_cannot_be_made_by_hand(key: object) -> None:
    with pytest.raises(PrivacyError, match="mechanism only"):
        Released(np.zeros(3), LOSS, key=key)


def test_value_and_loss_cannot_be_exchanged() -> None:
    released = LaplaceSimplex(1.0).release(np.eye(3), SystemNoise())
    for name in ("value", "loss"):
        with pytest.raises(AttributeError):
            setattr(released, name, np.zeros(3))
    with pytest.raises(AttributeError):
        released.other = 1  # type: ignore[attr-defined]


@pytest.mark.parametrize("bare", [np.zeros((3, 4)), [0.0], None, (np.zeros(3), LOSS)])
def test_a_bare_value_is_refused_with_its_name(bare: object) -> None:
    with pytest.raises(PrivacyError, match="content must be a Released value"):
        require_released(bare, "content")


def test_post_processing_keeps_the_loss() -> None:
    released = LaplaceSimplex(1.0).release(np.eye(3), SystemNoise())
    mapped = released.map(lambda value: value.argmax(axis=1))
    assert mapped.loss is released.loss
    assert require_released(mapped, "content") is mapped


def test_an_unprotected_release_says_so() -> None:
    released = Identity("utterance").release(np.zeros(3), SystemNoise())
    assert released.loss.unbounded
    assert "nothing is promised" in released.loss.note


def test_the_type_checker_refuses_a_bare_array(tmp_path: Path) -> None:
    pytest.importorskip("mypy")
    source = tmp_path / "bare.py"
    source.write_text(
        "import numpy as np\n"
        "from numpy.typing import NDArray\n"
        "from voxveil.privacy import Released\n"
        "def synthesize(content: Released[NDArray[np.float32]]) -> None: ...\n"
        "synthesize(np.zeros(3, np.float32))\n"
    )
    result = subprocess.run(
        [
            sys.executable,
            "-m",
            "mypy",
            "--strict",
            "--follow-imports=silent",
            "--cache-dir",
            str(tmp_path / "c"),
            str(source),
        ],
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 1, result.stderr
    assert "arg-type" in result.stdout and result.stdout.count("error:") == 1
