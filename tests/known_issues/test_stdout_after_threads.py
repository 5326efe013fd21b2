"""Tracking F0 in several threads left ``sys.stdout`` redirected, and the summary went nowhere."""

from __future__ import annotations

import sys
import warnings
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from voxveil.features.pitch.yaapt import track_f0


def test_tracking_in_threads_leaves_stdout_and_warnings_alone(capsys: pytest.CaptureFixture[str]) -> None:
    tone = np.sin(np.arange(4_000) * 0.05).astype(np.float32)
    track_f0(tone)  # what it imports may add filters of its own
    before, filters = sys.stdout, list(warnings.filters)
    with ThreadPoolExecutor(4) as pool:
        tracked = list(pool.map(track_f0, [tone] * 6 + [np.zeros(4_000, np.float32)] * 2))
    assert sys.stdout is before
    assert warnings.filters == filters
    assert capsys.readouterr().out == ""
    assert all(np.array_equal(track, tracked[0]) for track in tracked[1:6])
