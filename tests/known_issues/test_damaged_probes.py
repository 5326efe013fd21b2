"""Probes of another version, or edited ones, ended in tracebacks where a page was made of them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from voxveil.cli.main import main
from voxveil.privacy import Identity
from voxveil.research.probe.facts import Cost, spent
from voxveil.runtime.done import finish

pytest.importorskip("matplotlib", reason="needs the plots extra")


def pitch() -> dict[str, Any]:
    asi = {"accuracy": 0.5, "p_asi": 0.5, "p_asi_ci95": [0.4, 0.6], "chance": 0.25, "limit": 1.0}
    return {
        "format": 1,
        "kind": "pitch",
        "variant": "plain",
        "mechanism": "identity",
        "draw": 1,
        "corpus": {"name": "made", "synthetic": True, "revision": "r", "machine_transcripts": []},
        **spent([Cost(Identity("utterance").loss_for((4, 100)), 1)]),
        "correlation": {"value": 0.5, "ci95": [0.4, 0.6]},
        "tracks": [{"utterance": "u", "true": [0.0, 0.5], "released": [0.4, 0.5]}],
        "asi": asi,
    }


def reproduce(tmp_path: Path, probe: dict[str, Any]) -> int:
    place = tmp_path / "features/outputs/probe/pitch/plain/draw-1"
    place.mkdir(parents=True)
    (place / "probe.json").write_text(json.dumps(probe))
    finish(place, "probe_pitch", "plain")
    out = tmp_path / "out"
    return main(["reproduce", "dp-fig6", "--features", str(tmp_path / "features"), "--out", str(out)])


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"kind": None}, "kind must be pitch or content, got None"),
        ({"kind": ["pitch"]}, "kind must be pitch or content"),
        ({"draw": float("nan")}, "draw must be a whole number of 1 or more, got nan"),
        ({"loss": "odd"}, "loss must be an object, got 'odd'"),
        ({"loss": {"epsilon": None}}, 'loss.epsilon must be a number of 0 or more, or "inf", got None'),
        ({"asi": {}}, "asi.accuracy is missing"),
        ({"correlation": {"value": "odd"}}, "correlation.value must be a finite number, got 'odd'"),
    ],
)
def test_what_is_odd_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], change: dict[str, Any], said: str
) -> None:
    assert reproduce(tmp_path, pitch() | change) == 2
    error = capsys.readouterr().err
    assert f"plain/draw-1/probe.json: {said}" in error
    assert error.count("\n") == 1 and not (tmp_path / "out").exists()


def test_a_correlation_that_is_undefined_is_called_so(tmp_path: Path) -> None:
    assert reproduce(tmp_path, pitch() | {"correlation": {"value": None, "ci95": None}}) == 0
    numbers = json.loads((tmp_path / "out/results.json").read_text())["numbers"]
    assert [each["value"] for each in numbers if each["name"] == "pitch/plain/correlation"] == [None]
