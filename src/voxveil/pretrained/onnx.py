"""ONNX Runtime sessions on the CPU, with errors in one line."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from voxveil.runtime.errors import InputError, MissingExtraError, one_line

__all__ = ["open_session", "run_inputs", "run_session"]


def open_session(path: Path, threads: int = 1) -> Any:
    """Return a session for a network.

    Args:
        path: The ``.onnx`` file.
        threads: CPU threads; one gives the same bits on every run.

    Raises:
        MissingExtraError: ONNX Runtime is not installed.
        InputError: The file is no network that it reads.
    """
    try:
        import onnxruntime
    except ImportError:
        raise MissingExtraError("onnxruntime", "judges") from None
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    options.log_severity_level = 3
    try:
        return onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    except Exception as error:  # the library's own errors share no base class
        raise InputError(f"{path}: not a readable ONNX network ({one_line(error)[:200]})") from None


def run_session(session: Any, value: NDArray[np.float32], name: str) -> NDArray[Any]:
    """Return the first output of a session with one input.

    Raises:
        InputError: The network refuses the input.
    """
    return run_inputs(session, {session.get_inputs()[0].name: value}, name)[0]


def run_inputs(session: Any, values: Mapping[str, NDArray[Any]], name: str) -> list[NDArray[Any]]:
    """Return all outputs of a session.

    Raises:
        InputError: The network refuses the inputs.
    """
    try:
        outputs = session.run(None, dict(values))
    except Exception as error:  # the library's own errors share no base class
        raise InputError(f"{name}: the network refuses it ({one_line(error)[:200]})") from None
    return [np.asarray(output) for output in outputs]
