"""Announce first, then draw noise; where the register is away nothing is released."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("torch", reason="torch is not installed")

from made_speech import made_bundles, speak
from voxveil.audio.files import encode_flac
from voxveil.cli.main import main
from voxveil.privacy import SystemNoise, read_ledgers
from voxveil.privacy.ledger import registered
from voxveil.privacy.register import FolderRegister

pytestmark = pytest.mark.torch


@pytest.fixture(scope="module")
def bundles(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("order")
    return made_bundles(folder)


@pytest.fixture
def words(bundles: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """A command line that anonymizes two recordings."""
    monkeypatch.setenv("VOXVEIL_LEDGER", str(tmp_path / "register"))
    (tmp_path / "in").mkdir()
    for name in ("one", "two"):
        audio, _ = speak(120.0, 4_000, ord(name[0]))
        (tmp_path / "in" / f"{name}.flac").write_bytes(encode_flac(audio, name)[0])
    return ["anonymize", str(tmp_path / "in"), str(tmp_path / "out"), "--model", str(bundles / "anon_dp")]


def test_no_noise_is_drawn_before_the_announcement(
    words: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    events: list[str] = []
    create, draw = FolderRegister.create, SystemNoise.words

    def announced(self: FolderRegister, name: str, content: bytes) -> None:
        create(self, name, content)
        events.append("announced")

    def drawn(self: SystemNoise, count: int) -> np.ndarray:
        events.append("noise")
        return draw(self, count)

    monkeypatch.setattr(FolderRegister, "create", announced)
    monkeypatch.setattr(SystemNoise, "words", drawn)
    assert main(words) == 0
    assert events[0] == "announced"
    assert events.count("announced") == 1 and events.count("noise") > 10
    (release,) = registered(FolderRegister(tmp_path / "register"))
    (ledger,) = read_ledgers(tmp_path / "out")
    assert ledger.to_json() == release.to_json()
    assert [entry.utterance.epsilon for entry in release.entries] == [10 + 10 * 26] * 2


def test_with_the_register_away_nothing_is_released(
    words: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("VOXVEIL_LEDGER", str(tmp_path / "away" / "register"))

    def never(self: SystemNoise, count: int) -> np.ndarray:
        raise AssertionError("noise was drawn without an announcement")

    monkeypatch.setattr(SystemNoise, "words", never)
    assert main(words) == 3
    assert "nothing was released" in capsys.readouterr().err
    assert not list(tmp_path.glob("out/**/*.flac"))


def test_a_redraw_after_a_stop_is_charged_again(
    words: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The first run dies after its announcement; the second makes both outputs."""

    def stopped(self: SystemNoise, count: int) -> np.ndarray:
        raise KeyboardInterrupt

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(SystemNoise, "words", stopped)
        assert main(words) == 130
    assert main(words) == 0
    assert "2 of 2 inputs were announced before" in capsys.readouterr().err
    first, second = registered(FolderRegister(tmp_path / "register"))
    assert [entry.earlier for entry in (*first.entries, *second.entries)].count(1) == 2
    assert main(["ledger", "total", "--json"]) == 0
    assert f'"epsilon_utterance_max": {2 * (10 + 10 * 26)}.0' in capsys.readouterr().out
    assert main(words) == 0  # finished: nothing is drawn, nothing is charged
    assert len(registered(FolderRegister(tmp_path / "register"))) == 2
