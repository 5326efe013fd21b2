"""``voxveil anonymize``: folders and files, resume, bad files, the ledger, and what is said."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
import soundfile

from made_hostile import Hostile
from made_speech import made_bundles, speak
from voxveil.anonymize.anonymizer import Anonymizer
from voxveil.anonymize.recordings import padded_samples
from voxveil.audio.files import decode
from voxveil.cli.main import main
from voxveil.features.extraction import System
from voxveil.privacy.ledger import read_ledgers, registered
from voxveil.privacy.register import FolderRegister
from voxveil.runtime.done import file_sha256
from voxveil.runtime.errors import PrivacyError


@pytest.fixture(scope="module")
def bundles(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("bundles")
    return made_bundles(folder)


@pytest.fixture
def work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("VOXVEIL_LEDGER", str(tmp_path / "ledger"))
    (tmp_path / "in/deep/er").mkdir(parents=True)
    audio = speak(120.0, 8_000)[0]
    soundfile.write(tmp_path / "in/a.wav", audio, 16_000)
    soundfile.write(tmp_path / "in/deep/b.flac", np.stack([audio, -0.5 * audio], axis=1), 44_100)
    soundfile.write(tmp_path / "in/deep/er/c.wav", audio[:4_001], 48_000)
    (tmp_path / "in/notes.txt").write_text("not audio")
    return tmp_path


def run(bundles: Path, *words: str, system: str = "anon_dp") -> int:
    return main(["anonymize", *words, "--model", str(bundles / system), "--threads", "2"])


def outputs(folder: Path) -> set[str]:
    return {p.relative_to(folder).as_posix() for p in folder.rglob("*") if p.is_file()}


def test_a_folder_keeps_its_structure_and_length(work: Path, bundles: Path, capsys) -> None:  # type: ignore[no-untyped-def]
    assert run(bundles, "in", "out") == 0
    assert outputs(work / "out") == {"a.flac", "deep/b.flac", "deep/er/c.flac", "ledger.json"}
    expected = {"a": 8_000, "deep/b": -(-8_000 * 16_000 // 44_100), "deep/er/c": -(-4_001 // 3)}
    for name, samples in expected.items():
        info = soundfile.info(work / "out" / f"{name}.flac")
        assert (info.frames, info.samplerate, info.channels) == (samples, 16_000, 1)
    said = capsys.readouterr().out
    assert "3 recordings anonymized" in said
    assert "a.wav: utterance epsilon 520 nat, K = 51 vectors" in said
    assert "pitch: epsilon 10.0 per utterance (laplace_cube, L1 sensitivity 4 K)" in said
    assert "content: epsilon 10.0 per vector (laplace_l1, L1 sensitivity 2.0)" in said
    assert "synthetic speech" in said


def test_the_ledger_is_in_the_register_and_beside_the_speech(work: Path, bundles: Path) -> None:
    run(bundles, "in", "out")
    (release,) = read_ledgers(work / "out")
    (announced,) = registered(FolderRegister(work / "ledger"))
    assert release.to_json() == announced.to_json()
    assert release.purpose == "release"
    assert {entry.input for entry in release.entries} == {"a.wav", "deep/b.flac", "deep/er/c.wav"}


def test_one_recording_to_a_folder_or_a_name(work: Path, bundles: Path) -> None:
    assert run(bundles, "in/a.wav", "folder") == 0
    assert outputs(work / "folder") == {"a.flac", "ledger.json"}
    assert run(bundles, "in/a.wav", "named/hidden.flac") == 0
    assert outputs(work / "named") == {"hidden.flac", "ledger.json"}


def test_a_bundle_is_chosen_by_system(work: Path, bundles: Path, capsys) -> None:  # type: ignore[no-untyped-def]
    model = str(bundles)
    assert main(["anonymize", "in", "out", "--model", model]) == 2
    assert "choose one by --system" in capsys.readouterr().err
    assert main(["anonymize", "in", "out", "--model", model, "--system", "nope"]) == 2
    assert "it holds anon, anon_dp, anon_pc, copy, mcadams, original" in capsys.readouterr().err
    assert main(["anonymize", "in", "out", "--model", model, "--system", "anon"]) == 0
    assert "epsilon unbounded (no promise)" in capsys.readouterr().out


def test_bad_files_are_named_and_nothing_is_released(work: Path, bundles: Path, capsys) -> None:  # type: ignore[no-untyped-def]
    (work / "in/broken.flac").write_bytes((work / "in/deep/b.flac").read_bytes()[:3_000])
    (work / "in/empty.wav").write_bytes(b"")
    assert run(bundles, "in", "out") == 2
    said = capsys.readouterr().err
    assert said.count("refused") >= 2
    assert "broken.flac" in said
    assert "empty.wav" in said
    assert "2 of 5 recordings cannot be used; nothing was released" in said
    assert not (work / "out").exists()
    assert not (work / "ledger").exists()
    assert run(bundles, "in", "out", "--on-bad-audio", "skip") == 0
    assert outputs(work / "out") == {"a.flac", "deep/b.flac", "deep/er/c.flac", "ledger.json"}
    assert "2 skipped" in capsys.readouterr().out


def test_stopped_and_started_again(work: Path, bundles: Path, capsys, monkeypatch) -> None:  # type: ignore[no-untyped-def]
    """Finished outputs stay as they are; the rest is drawn and charged again, and said so."""
    anonymize, count = Anonymizer.anonymize_private, iter(range(100))

    def dies(self: Anonymizer, *args: object, **kwargs: object) -> object:
        if next(count) == 2:
            raise KeyboardInterrupt
        return anonymize(self, *args, **kwargs)  # type: ignore[arg-type]

    monkeypatch.setattr(Anonymizer, "anonymize_private", dies)
    assert run(bundles, "in", "out") == 130
    monkeypatch.undo()
    monkeypatch.chdir(work)
    monkeypatch.setenv("VOXVEIL_LEDGER", str(work / "ledger"))
    finished = {path: path.read_bytes() for path in (work / "out").rglob("*.flac")}
    assert 1 <= len(finished) <= 2
    capsys.readouterr()
    assert run(bundles, "in", "out") == 0
    said = capsys.readouterr()
    assert "charged again" in said.err
    assert f"{len(finished)} kept from an earlier run" in said.out
    for path, data in finished.items():
        assert path.read_bytes() == data
    releases = registered(FolderRegister(work / "ledger"))
    assert sorted(len(release.entries) for release in releases) == sorted([3, 3 - len(finished)])
    assert len(read_ledgers(work / "out")) == 2
    assert run(bundles, "in", "out") == 0
    assert "nothing to do: 3 outputs are there" in capsys.readouterr().out
    assert len(registered(FolderRegister(work / "ledger"))) == 2


def test_what_is_not_ours_is_never_overwritten(work: Path, bundles: Path, capsys) -> None:  # type: ignore[no-untyped-def]
    (work / "out").mkdir()
    (work / "out/a.flac").write_bytes(b"somebody's")
    assert run(bundles, "in", "out") == 2
    assert "no ledger beside it says that anon_dp made it" in capsys.readouterr().err
    assert (work / "out/a.flac").read_bytes() == b"somebody's"
    assert run(bundles, "in", "in") == 2
    assert "the same folder" in capsys.readouterr().err


def test_another_system_s_output_is_not_taken_for_done(work: Path, bundles: Path, capsys) -> None:  # type: ignore[no-untyped-def]
    assert run(bundles, "in", "out") == 0
    assert run(bundles, "in", "out", system="anon") == 2
    assert "no ledger beside it says that anon made it" in capsys.readouterr().err


def changed_bundle(source: Path, copy: Path, **facts: object) -> Path:
    """Copy a bundle, change its description, and seal it again."""
    shutil.copytree(source, copy)
    content = json.loads((copy / "bundle.json").read_text())
    (copy / "bundle.json").write_text(json.dumps({**content, **facts}))
    names = [line.split("  ")[1] for line in (copy / "SHA256SUMS").read_text().splitlines()]
    (copy / "SHA256SUMS").write_text("".join(f"{file_sha256(copy / name)}  {name}\n" for name in names))
    return copy


def test_an_output_of_another_model_of_that_name_is_not_taken_for_done(
    work: Path,
    bundles: Path,
    capsys,  # type: ignore[no-untyped-def]
) -> None:
    """Same system name, other weights, losses or loudness: neither kept nor overwritten."""
    assert run(bundles, "in", "out") == 0
    before = {path: path.read_bytes() for path in (work / "out").rglob("*.flac")}
    releases = len(registered(FolderRegister(work / "ledger")))
    weights = changed_bundle(bundles / "anon_dp", work / "weights", version="other")
    losses = changed_bundle(bundles / "anon", work / "losses", system="anon_dp")
    for model, words, difference in (
        (weights, [], "model "),
        (losses, [], "content epsilon 10 per vector (laplace_l1), now epsilon inf per vector (identity)"),
        (bundles / "anon_dp", ["--loudness", "-30"], "made with loudness -23 LUFS, now -30 LUFS;"),
    ):
        capsys.readouterr()
        assert main(["anonymize", "in", "out", "--model", str(model), *words]) == 2
        said = capsys.readouterr().err
        assert "error: out/a.flac: exists, made with" in said
        assert difference in said
    assert {path: path.read_bytes() for path in (work / "out").rglob("*.flac")} == before
    assert len(registered(FolderRegister(work / "ledger"))) == releases
    assert run(bundles, "in", "out") == 0


def test_a_named_output_is_held_against_its_own_release(work: Path, bundles: Path, capsys) -> None:  # type: ignore[no-untyped-def]
    assert run(bundles, "in/a.wav", "out/x.flac") == 0
    assert run(bundles, "in/a.wav", "out/y.flac", "--loudness", "-30") == 0
    assert run(bundles, "in/a.wav", "out/x.flac", "--loudness", "-30") == 2
    assert "out/x.flac: exists, made with loudness -23 LUFS" in capsys.readouterr().err
    assert run(bundles, "in/a.wav", "out/x.flac") == 0
    assert "nothing to do" in capsys.readouterr().out


@pytest.mark.parametrize("damage", ["empty", "cut", "shorter", "no_audio"])
def test_a_destroyed_output_is_drawn_again(work: Path, bundles: Path, capsys, damage: str) -> None:  # type: ignore[no-untyped-def]
    """It counted as finished."""
    assert run(bundles, "in", "out") == 0
    path, other = work / "out/a.flac", work / "out/deep/b.flac"
    whole, kept = path.read_bytes(), other.read_bytes()
    if damage == "shorter":
        soundfile.write(path, soundfile.read(path)[0][:-1], 16_000)
    else:
        path.write_bytes({"empty": b"", "cut": whole[: len(whole) // 2], "no_audio": b"text"}[damage])
    capsys.readouterr()
    assert run(bundles, "in", "out") == 0
    said = capsys.readouterr()
    assert "out/a.flac: damaged (" in said.err
    assert "charged again" in said.err
    assert "1 recordings anonymized" in said.out
    assert soundfile.info(path).frames == 8_000
    assert other.read_bytes() == kept
    assert [len(release.entries) for release in registered(FolderRegister(work / "ledger"))].count(1) == 1


def test_two_recordings_with_one_output_are_refused(work: Path, bundles: Path, capsys) -> None:  # type: ignore[no-untyped-def]
    (work / "in/a.flac").write_bytes((work / "in/deep/b.flac").read_bytes())
    assert run(bundles, "in", "out") == 2
    assert "a.flac and a.wav would both become out/a.flac" in capsys.readouterr().err


def test_a_changed_model_costs_nothing(work: Path, bundles: Path, tmp_path: Path, capsys) -> None:  # type: ignore[no-untyped-def]
    shutil.copytree(bundles / "anon_dp", tmp_path / "copy/anon_dp")
    (tmp_path / "copy/anon_dp/pool.npz").write_bytes(b"changed")
    assert main(["anonymize", "in", "out", "--model", str(tmp_path / "copy/anon_dp")]) == 2
    assert "pool.npz: changed since the model bundle was written" in capsys.readouterr().err
    assert not (work / "ledger").exists()


def test_nothing_to_anonymize(work: Path, bundles: Path, capsys) -> None:  # type: ignore[no-untyped-def]
    (work / "nothing").mkdir()
    assert run(bundles, "nothing", "out") == 2
    assert "no recordings in it" in capsys.readouterr().err
    assert run(bundles, "absent", "out") == 2
    assert "no such file or folder" in capsys.readouterr().err


def test_a_recording_that_overflows_inside_is_named(work: Path, bundles: Path, capsys, monkeypatch) -> None:  # type: ignore[no-untyped-def]
    def overflows(*_: object, **__: object) -> None:
        raise PrivacyError("laplace_l1: the value has NaN or infinite entries; nothing was released")

    monkeypatch.setattr(System, "release_features", overflows)
    assert run(bundles, "in/a.wav", "out") == 3
    assert "error: in/a.wav: laplace_l1: the value has NaN" in capsys.readouterr().err
    assert not list((work / "out").glob("*.flac"))


def test_silence_is_announced_as_such(work: Path, bundles: Path, capsys) -> None:  # type: ignore[no-untyped-def]
    soundfile.write(work / "in/a.wav", np.zeros(8_000), 16_000)
    assert run(bundles, "in", "out") == 0
    assert "warning: a.wav: silence, all its samples are equal in 16 bit" in capsys.readouterr().err


def test_hostile_files(hostile: Hostile, work: Path, bundles: Path) -> None:
    """Every file of the hostile folder is either anonymized or refused by name, never a traceback."""
    assert run(bundles, str(hostile.folder), "out", "--on-bad-audio", "skip") == 0
    made = list((work / "out").rglob("*.flac"))
    assert {path.stem for path in made} == {Path(name).stem for name in hostile.flags}
    for path in made:
        audio, rate = soundfile.read(path)
        assert rate == 16_000
        assert np.isfinite(audio).all()


def test_lengths_are_padded_before_anything_is_released(work: Path, bundles: Path, capsys) -> None:  # type: ignore[no-untyped-def]
    """Recordings of different lengths within one step come out, and are charged, alike."""
    assert run(bundles, "in", "out", "--pad-to", "2") == 0
    (release,) = read_ledgers(work / "out")
    lengths = {
        path.name: len(decode(path.read_bytes(), path.name)) for path in (work / "out").rglob("*.flac")
    }
    assert all(length % 32_000 == 0 for length in lengths.values())
    assert {entry.vectors for entry in release.entries} == {length // 160 + 1 for length in lengths.values()}
    capsys.readouterr()
    assert run(bundles, "in", "out", "--pad-to", "2") == 0
    assert "nothing to do" in capsys.readouterr().out
    assert run(bundles, "in", "out") == 2
    assert "padding to 2 s, now 0 s" in capsys.readouterr().err
    for wrong in ("-1", "0.01", "nan"):
        assert run(bundles, "in", "other", "--pad-to", wrong) == 2
        assert "--pad-to must be 0, or lie in [0.1, 3600] seconds" in capsys.readouterr().err


@pytest.mark.parametrize(("samples", "seconds", "wanted"), [(1, 0, 1), (1, 1, 16_000), (16_000, 1, 16_000)])
def test_padding_is_up_to_a_multiple(samples: int, seconds: float, wanted: int) -> None:
    assert padded_samples(samples, seconds) == wanted
    assert padded_samples(16_001, 1) == 32_000
