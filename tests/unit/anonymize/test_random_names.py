"""``voxveil anonymize --names random``: outputs that say nothing, and the private map beside them."""

from __future__ import annotations

import json
import os
import re
import signal
import stat
import subprocess
import sys
from pathlib import Path

import pytest
import soundfile

from made_speech import made_bundles, speak
from voxveil.anonymize.output_names import RandomNames, private_folder
from voxveil.audio.files import decode
from voxveil.cli.main import main
from voxveil.privacy.ledger import read_ledgers, registered
from voxveil.privacy.register import FolderRegister
from voxveil.runtime.errors import InputError

RECORDINGS = {"SPEAKER-61/interview-of-may.wav", "SPEAKER-61/second.flac", "SPEAKER-99/third.wav"}


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("bundles")
    return made_bundles(folder) / "anon_dp"


@pytest.fixture
def work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("VOXVEIL_LEDGER", str(tmp_path / "ledger"))
    for number, name in enumerate(sorted(RECORDINGS)):
        (tmp_path / "in" / name).parent.mkdir(parents=True, exist_ok=True)
        soundfile.write(tmp_path / "in" / name, speak(120.0, 4_000 + 160 * number)[0], 16_000)
    return tmp_path


def run(model: Path, *words: str) -> int:
    return main(["anonymize", *words, "--model", str(model), "--threads", "1", "--names", "random"])


def files(folder: Path) -> set[str]:
    return {p.relative_to(folder).as_posix() for p in folder.rglob("*") if p.is_file()}


def the_map(work: Path) -> dict[str, str]:
    return dict(json.loads((work / "out.private/names.json").read_text())["names"])


def test_the_output_holds_speech_alone_and_the_map_is_beside_it(work: Path, model: Path, capsys) -> None:  # type: ignore[no-untyped-def]
    assert run(model, "in", "out") == 0
    made = files(work / "out")
    assert len(made) == 3 and all(re.fullmatch(r"[0-9a-f]{32}\.flac", name) for name in made)
    assert set(the_map(work)) == RECORDINGS and set(the_map(work).values()) == made
    for recording, name in the_map(work).items():
        samples = len(decode((work / "out" / name).read_bytes(), name))
        assert samples == soundfile.info(work / "in" / recording).frames
    # Not in a name, not in a byte of what may be published.
    for word in (b"SPEAKER", b"interview", b"second", b"third"):
        for path in (work / "out").iterdir():
            assert word not in path.name.encode() + path.read_bytes()
    assert files(work / "out.private") == {"names.json", "ledger.json"}
    assert stat.S_IMODE((work / "out.private").stat().st_mode) == 0o700
    for path in (work / "out.private").iterdir():
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert "out.private: keep it private" in capsys.readouterr().out


def test_the_ledger_names_the_recordings_and_says_that_paths_are_not_public(work: Path, model: Path) -> None:
    assert run(model, "in", "out") == 0
    (release,) = read_ledgers(work / "out.private")
    assert release.to_json() == registered(FolderRegister(work / "ledger"))[0].to_json()
    assert {entry.input for entry in release.entries} == RECORDINGS
    assert release.to_json()["public_by_definition"] == ["sample count", "accepted or refused"]
    assert release.settings["names"] == "random"


def test_the_order_of_writing_tells_nothing(work: Path, model: Path) -> None:
    assert run(model, "in", "out") == 0
    made = sorted((work / "out").iterdir(), key=lambda path: path.stat().st_mtime_ns)
    assert [path.name for path in made] == sorted(the_map(work).values())


def test_names_are_new_in_every_folder(work: Path, model: Path) -> None:
    assert run(model, "in", "out") == 0
    assert run(model, "in", "other") == 0
    assert not files(work / "out") & files(work / "other")


KILLED = """
import os, signal, sys
from voxveil.anonymize.anonymizer import Anonymizer
from voxveil.cli.main import main
anonymize, calls = Anonymizer.anonymize_private, []
def dies(self, *args, **kwargs):
    calls.append(1)
    if len(calls) == 2:
        os.kill(os.getpid(), signal.SIGKILL)
    return anonymize(self, *args, **kwargs)
Anonymizer.anonymize_private = dies
sys.exit(main(sys.argv[1:]))
"""


def test_killed_and_started_again_the_names_stay(work: Path, model: Path, capsys) -> None:  # type: ignore[no-untyped-def]
    words = ["anonymize", "in", "out", "--model", str(model), "--threads", "1", "--names", "random"]
    killed = subprocess.run([sys.executable, "-c", KILLED, *words], capture_output=True, env=dict(os.environ))
    assert killed.returncode == -signal.SIGKILL
    before = the_map(work)
    (finished,) = (work / "out").glob("*.flac")
    content = finished.read_bytes()
    assert set(before) == RECORDINGS and finished.name in before.values()
    assert run(model, "in", "out") == 0
    assert the_map(work) == before
    assert finished.read_bytes() == content
    assert "1 kept from an earlier run" in capsys.readouterr().out
    assert {path.name for path in (work / "out").glob("*.flac")} == set(before.values())
    assert len(read_ledgers(work / "out.private")) == 2
    # A new recording later gets a name of its own, those that are gone keep theirs.
    soundfile.write(work / "in/later.wav", speak(120.0, 4_000)[0], 16_000)
    (work / "in/SPEAKER-99/third.wav").unlink()
    assert run(model, "in", "out") == 0
    assert {**the_map(work), "later.wav": ""} == {**before, "later.wav": ""}
    assert run(model, "in", "out") == 0
    assert "nothing to do: 3 outputs are there" in capsys.readouterr().out


def test_equal_stems_do_not_collide(work: Path, model: Path) -> None:
    for suffix in ("wav", "flac"):
        soundfile.write(work / f"in/same.{suffix}", speak(120.0, 4_000)[0], 16_000)
    assert run(model, "in", "out") == 0
    assert len(files(work / "out")) == 5


def test_kept_and_random_names_do_not_mix(work: Path, model: Path, capsys) -> None:  # type: ignore[no-untyped-def]
    assert run(model, "in", "out") == 0
    assert main(["anonymize", "in", "out", "--model", str(model)]) == 2
    assert "out: its outputs have random names; go on with --names random" in capsys.readouterr().err
    assert main(["anonymize", "in/SPEAKER-99", "plain", "--model", str(model)]) == 0
    assert run(model, "in", "plain") == 2
    assert "plain: holds outputs under their own names (ledger.json)" in capsys.readouterr().err
    assert run(model, "in/SPEAKER-99/third.wav", "named/x.flac") == 2
    assert "--names random needs a folder" in capsys.readouterr().err
    assert run(model, "in/SPEAKER-99/third.wav", "single") == 0
    assert len(files(work / "single")) == 1


@pytest.mark.parametrize(
    "content",
    [
        "{",
        '{"format": 2, "names": {}}',
        '{"format": 1, "names": {"a": "../x.flac"}}',
        json.dumps({"format": 1, "names": dict.fromkeys("ab", "0" * 32 + ".flac")}),
    ],
)
def test_a_damaged_map_stops_before_anything_is_charged(
    work: Path, model: Path, content: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (work / "out.private").mkdir()
    (work / "out.private/names.json").write_text(content)
    assert run(model, "in", "out") == 2
    assert "names.json: not " in capsys.readouterr().err
    assert not (work / "ledger").exists() and not (work / "out").exists()


def test_a_private_folder_of_somebody_else_is_left_alone(work: Path, model: Path, capsys) -> None:  # type: ignore[no-untyped-def]
    (work / "out.private").mkdir()
    (work / "out.private/diary.txt").write_text("x")
    assert run(model, "in", "out") == 2
    assert "out.private: exists without names.json" in capsys.readouterr().err
    assert files(work / "out.private") == {"diary.txt"}


def test_two_runs_do_not_lose_each_other_s_names(tmp_path: Path) -> None:
    first, second = (RandomNames.open(tmp_path / "out") for _ in range(2))
    first.of("a.wav")
    with first.locked():
        with pytest.raises(InputError, match="another run is writing there"), second.locked():
            pass
        first.save(["a.wav"])
    second.of("a.wav")
    with pytest.raises(InputError, match="changed while recordings were read"), second.locked():
        pass
    assert RandomNames.open(tmp_path / "out").of("a.wav") == first.of("a.wav")


def test_there_is_no_beside_the_root() -> None:
    with pytest.raises(InputError, match="a place beside it"):
        private_folder(Path("/"))
    assert private_folder(Path("a/../b")).name == "b.private"
