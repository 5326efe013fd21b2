"""Make the helper modules of this folder importable by its tests; stores of their own."""

from __future__ import annotations

import inspect
import os
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from s3_server import Store


@pytest.fixture(scope="session", autouse=True)
def quick_caller_names() -> Iterator[None]:
    """Let kfp name the caller of a setter without describing every frame of the stack.

    Each setter of a task reads the name in ``inspect.stack()[1][3]``. The stack of a test is deep, and
    describing its frames searches the loaded modules and the file system: with torch loaded by other tests
    a compilation takes minutes.
    """
    try:
        from kfp.dsl import pipeline_task
    except ImportError:
        yield
        return
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pipeline_task, "inspect", SimpleNamespace(stack=_two_frames))
        yield


def _two_frames() -> list[inspect.FrameInfo]:
    """Return the first two entries of what ``inspect.stack(0)`` returns to our caller."""
    inner = sys._getframe(1)
    outer = inner.f_back
    assert outer is not None
    return [
        inspect.FrameInfo(frame, frame.f_code.co_filename, frame.f_lineno, frame.f_code.co_name, None, None)
        for frame in (inner, outer)
    ]


@pytest.fixture
def clean(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> pytest.MonkeyPatch:
    for name in list(os.environ):
        if name.startswith("AWS_"):
            monkeypatch.delenv(name)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "none"))
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "none"))
    return monkeypatch


@pytest.fixture
def store(clean: pytest.MonkeyPatch) -> Iterator[Store]:
    server = Store()
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    clean.setenv("AWS_ACCESS_KEY_ID", "key")
    clean.setenv("AWS_SECRET_ACCESS_KEY", "secret")
    yield server
    server.shutdown()
    server.server_close()
