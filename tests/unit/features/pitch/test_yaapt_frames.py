"""F0 frame by frame against pYAAPT, whose frames ours are meant to be.

Every candidate of every frame must be the same. Where two paths through them cost the same (a step up by
two small steps costs as much as by one, so this happens), rounding decides in both; then both must be of
least cost, and such frames are few.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

from given_files import DATA, given_folder, sources
from made_hostile import Hostile
from made_speech import speak
from voxveil.audio.files import read_recording
from voxveil.audio.frames import HOP, SAMPLE_RATE
from voxveil.corpus.embedded import EmbeddedSource
from voxveil.features.pitch.yaapt import tracker
from voxveil.features.pitch.yaapt.grid import F0_MAX, F0_MIN, FILTER_ORDER
from voxveil.features.pitch.yaapt.refine import cheapest_path, running_median

pytest.importorskip("amfm_decompy", reason="AMFM_decompy is not installed")


def published(samples: np.ndarray, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any] | None:
    """Return what pYAAPT finds on the way and at the end; None where it stops in the middle."""
    import amfm_decompy.basic_tools as basic
    from amfm_decompy import pYAAPT

    found: dict[str, Any] = {}
    refine, dynamic = pYAAPT.refine, pYAAPT.dynamic

    def refined(*arguments: Any) -> Any:
        found["spectral"] = arguments[4].copy()
        pitch, merit = refine(*arguments)
        found["pitch"], found["merit"] = pitch.T.copy(), merit.T.copy()
        return pitch, merit

    def chosen(pitch: Any, merit: Any, frames: Any, parameters: Any) -> Any:
        found["energy"], found["track"] = frames.energy.copy(), dynamic(pitch, merit, frames, parameters)
        return found["track"]

    with monkeypatch.context() as patch, warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        patch.setattr(pYAAPT, "refine", refined)
        patch.setattr(pYAAPT, "dynamic", chosen)
        patch.setattr(pYAAPT, "print", lambda *_: None, raising=False)
        try:
            pYAAPT.yaapt(
                basic.SignalObj(samples, SAMPLE_RATE),
                frame_length=35.0,
                tda_frame_length=35.0,
                frame_space=1000.0 * HOP / SAMPLE_RATE,
                f0_min=F0_MIN,
                f0_max=F0_MAX,
                bp_forder=FILTER_ORDER,
            )
        except (IndexError, ValueError):
            return None
    return found


def cost(track: np.ndarray, found: dict[str, Any]) -> float:
    """Return what a track costs by YAAPT's rules, one frame and one step at a time."""
    pitch, merit, energy = found["pitch"], found["merit"], found["energy"]
    best = pitch[:, -2]
    mean = best[best > 0].mean() if (best > 0).any() else 1.0
    total = 0.0
    for frame, value in enumerate(track):
        same = np.isclose(pitch[frame], value, rtol=1e-9)
        assert same.any(), "not a candidate"
        total += float((1 - merit[frame][same]).min())
        if frame:
            before = track[frame - 1]
            if value > 0 and before > 0:
                step = 0.15 * abs(value - before) / mean
            elif value > 0 or before > 0:
                step = 0.5 * (1 - min(1.0, abs(energy[frame] - energy[frame - 1])))
            else:
                step = 0.1
            total += step / 0.9
    return total


def compare(audio: np.ndarray, monkeypatch: pytest.MonkeyPatch) -> tuple[int, int]:
    """Check a recording; return frames that differ by a tie, and all frames."""
    samples = np.asarray(audio, np.float64)
    samples = samples - samples.mean()
    padded = np.pad(samples / np.abs(samples).max(), (tracker._LEAD, tracker._TRAIL))
    theirs = published(padded.copy(), monkeypatch)
    ours: dict[str, Any] = {}
    final = tracker.final_pitch

    def kept(pitch: np.ndarray, merit: np.ndarray, energy: np.ndarray) -> np.ndarray:
        ours.update(pitch=pitch.copy(), merit=merit.copy(), energy=energy.copy())
        return final(pitch, merit, energy)

    with monkeypatch.context() as patch:
        patch.setattr(tracker, "final_pitch", kept)
        track = tracker._yaapt(padded)[0]
    if theirs is None:
        return 0, 0
    np.testing.assert_allclose(ours["energy"], theirs["energy"], rtol=1e-9)
    np.testing.assert_allclose(ours["pitch"], theirs["pitch"], rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(ours["merit"], theirs["merit"], atol=1e-6)
    assert cost(track, theirs) == pytest.approx(cost(theirs["track"], theirs), abs=1e-6)
    return int((~np.isclose(track, theirs["track"], rtol=1e-9)).sum()), len(track)


@pytest.mark.parametrize("origin", sources(DATA, "LibriSpeech"))
def test_speech_frame_by_frame(origin: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Speech of espeak-ng and, where the excerpt is there, of people."""
    if origin == "made":
        pytest.importorskip("espeakng_loader", reason="needs the demo extra")
        source = EmbeddedSource(seed=5, public_speakers=4, private_speakers=2, utterances=2)
        recordings = [source.read(clip).audio for clip in source.clips]
    else:
        folder = given_folder(DATA, "LibriSpeech")
        assert folder is not None
        paths = sorted(folder.glob("*/*/*/*.flac"))[::160]
        recordings = [read_recording(path).audio for path in paths]
    assert len(recordings) >= 5
    counts = np.sum([compare(audio, monkeypatch) for audio in recordings], axis=0)
    assert counts[1] > 1_500
    assert counts[0] < 0.01 * counts[1]


def test_hostile_recordings_frame_by_frame(hostile: Hostile, monkeypatch: pytest.MonkeyPatch) -> None:
    compared = 0
    for name in sorted(hostile.flags):
        audio = read_recording(hostile.folder / name).audio[: 8 * SAMPLE_RATE]
        if len(audio) >= 1_600 and np.ptp(audio) > 1 / 32768:
            different, frames = compare(audio, monkeypatch)
            assert different <= 0.02 * frames, name
            compared += frames > 0
    assert compared >= 4


@pytest.mark.parametrize("samples", [1_600, 1_759, 2_000, 4_111, 24_123])
@pytest.mark.parametrize("f0", [70.0, 130.0, 390.0])
def test_made_speech_of_any_length_frame_by_frame(
    f0: float, samples: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    different, frames = compare(speak(f0, samples, key=samples)[0], monkeypatch)
    assert different <= 0.02 * frames


def test_blocks_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    audio = speak(130.0, 40_000)[0]
    whole = tracker.track_f0(audio)
    for module in ("spectral", "temporal"):
        monkeypatch.setattr(f"voxveil.features.pitch.yaapt.{module}._BLOCK", 7)
    np.testing.assert_allclose(tracker.track_f0(audio), whole, rtol=1e-6)


def test_the_cheapest_path_is_the_cheapest_of_all() -> None:
    rng = np.random.default_rng(0)
    local, steps = rng.random((5, 3)), rng.random((5, 3, 3))
    costs = {}
    for path in np.ndindex(3, 3, 3, 3, 3):
        moves = sum(steps[t, path[t], path[t - 1]] for t in range(1, 5))
        costs[path] = moves + sum(local[t, path[t]] for t in range(5))
    assert tuple(cheapest_path(local, steps).tolist()) == min(costs, key=costs.__getitem__)


@pytest.mark.parametrize("count", [1, 3, 6, 40])
@pytest.mark.parametrize("width", [5, 7])
def test_the_running_median_is_that_of_zeros_beyond_the_ends(count: int, width: int) -> None:
    values = np.random.default_rng(count).random(count)
    padded = np.concatenate([np.zeros(width // 2), values, np.zeros(width // 2)])
    expected = [sorted(padded[i : i + width])[width // 2] for i in range(count)]
    np.testing.assert_array_equal(running_median(values, width), expected)
