"""``voxveil anonymize`` on a Kaldi data folder: VoicePrivacy's layout in and out."""

from __future__ import annotations

from pathlib import Path

import pytest
import soundfile

from made_speech import E, SystemParams, made_bundles, speak, write_speaker_model
from voxveil.anonymize.bundle import write_bundle
from voxveil.cli.main import main
from voxveil.corpus.kaldi import audio_source, read_kaldi
from voxveil.privacy.ledger import read_ledgers
from voxveil.runtime.errors import InputError

assert E  # the embedding size of the bundles below


@pytest.fixture(scope="module")
def bundles(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("bundles")
    made_bundles(folder)
    write_speaker_model(folder / "models/speaker")
    parts = {"pitch": folder / "models/pitch/plain", "content": folder / "models/content/plain"}
    parts |= {name: folder / "models" / name for name in ("speaker", "vocoder", "synthesis")}
    system = SystemParams(target="farthest", target_level="speaker", target_sex="same")
    write_bundle(folder / "bundles/far", "far", system, parts, {"name": "made", "synthetic": True})
    return folder / "bundles"


@pytest.fixture
def work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A challenge folder: paths count from where one stands, one utterance is decoded by a command."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("VOXVEIL_LEDGER", str(tmp_path / "ledger"))
    data, corpus = tmp_path / "data/test_trials", tmp_path / "corpora/x"
    data.mkdir(parents=True)
    corpus.mkdir(parents=True)
    for index, item in enumerate(("s1-1", "s1-2", "s2-1")):
        soundfile.write(corpus / f"{item}.flac", speak(110.0 + 20 * index, 6_000 + index)[0], 16_000)
    (data / "wav.scp").write_text(
        "s1-1 corpora/x/s1-1.flac\ns1-2 flac -c -d -s corpora/x/s1-2.flac |\ns2-1 corpora/x/s2-1.flac\n"
    )
    (data / "utt2spk").write_text("s1-1 s1\ns1-2 s1\ns2-1 s2\n")
    (data / "spk2utt").write_text("s1 s1-1 s1-2\ns2 s2-1\n")
    (data / "spk2gender").write_text("s1 f\ns2 m\n")
    (data / "text").write_text("s1-1 A B\ns1-2 C\ns2-1 D\n")
    (data / "trials").write_text("s1 s1-1 target\n")
    (data / "utt2dur").write_text("s1-1 0.4\n")
    return tmp_path


def run(bundles: Path, *words: str, system: str = "anon_dp") -> int:
    return main(["anonymize", *words, "--model", str(bundles / system), "--threads", "2"])


@pytest.mark.parametrize("form", ["wav", "flac"])
def test_a_data_folder_becomes_another(work: Path, bundles: Path, form: str) -> None:
    assert run(bundles, "data/test_trials", "data/test_trials_dp", "--format", form) == 0
    out = work / "data/test_trials_dp"
    lines = [f"{item} data/test_trials_dp/wav/{item}.{form}" for item in ("s1-1", "s1-2", "s2-1")]
    assert (out / "wav.scp").read_text().splitlines() == lines
    for name in ("utt2spk", "spk2utt", "spk2gender", "text", "trials"):
        assert (out / name).read_text() == (work / "data/test_trials" / name).read_text()
    assert not (out / "utt2dur").exists()
    info = soundfile.info(out / f"wav/s1-2.{form}")
    assert (info.frames, info.samplerate, info.channels, info.format) == (6_001, 16_000, 1, form.upper())
    (release,) = read_ledgers(out)
    assert [(entry.input, entry.speaker) for entry in release.entries] == [
        ("s1-1", "s1"),
        ("s1-2", "s1"),
        ("s2-1", "s2"),
    ]
    # And it is a corpus that the chain can judge.
    clips = read_kaldi(out).clips
    assert [(clip.id, clip.speaker, clip.sex) for clip in clips][0] == ("s1-1", "s1", "F")


def test_a_stopped_run_goes_on_and_writes_its_tables(
    work: Path, bundles: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(bundles, "data/test_trials", "out") == 0
    kept = (work / "out/wav/s1-1.flac").read_bytes()
    (work / "out/wav/s2-1.flac").unlink()
    (work / "out/wav.scp").unlink()
    assert run(bundles, "data/test_trials", "out") == 0
    assert "1 recordings anonymized, 2 kept" in capsys.readouterr().out
    assert (work / "out/wav/s1-1.flac").read_bytes() == kept
    assert len((work / "out/wav.scp").read_text().splitlines()) == 3
    (work / "out/wav.scp").unlink()
    assert run(bundles, "data/test_trials", "out") == 0
    assert len((work / "out/wav.scp").read_text().splitlines()) == 3


def test_skipped_utterances_are_in_no_table(work: Path, bundles: Path) -> None:
    (work / "corpora/x/s2-1.flac").write_bytes(b"fLaC broken")
    assert run(bundles, "data/test_trials", "out") == 2
    assert run(bundles, "data/test_trials", "out", "--on-bad-audio", "skip") == 0
    for name in ("wav.scp", "utt2spk", "spk2utt", "text"):
        assert "s2" not in (work / "out" / name).read_text()


def test_a_plain_search_ignores_the_tables(work: Path, bundles: Path) -> None:
    soundfile.write(work / "data/test_trials/a.wav", speak(120.0, 4_000)[0], 16_000)
    assert run(bundles, "data/test_trials", "out", "--layout", "plain") == 0
    assert (work / "out/a.flac").is_file() and not (work / "out/wav.scp").exists()


@pytest.mark.parametrize(
    ("table", "text", "words"),
    [
        ("wav.scp", "s1-1 touch made |\n", "s1-1 is a command, not a file"),
        ("wav.scp", "s1-1 flac -c -d -s a.flac | sox - - |\n", "s1-1 is a command"),
        ("wav.scp", "s1-1 flac -c -d -s $(touch made).flac |\n", "s1-1 is a command"),
        ("wav.scp", "s3-1 corpora/x/s1-1.flac\n", "s3-1 is not in"),
        ("wav.scp", "../s1-1 corpora/x/s1-1.flac\n", "is not in|cannot name a file"),
        ("wav.scp", "\n", "no utterances"),
        ("spk2gender", "s1 f\ns2 x\n", "spk2gender:2: must be f or m"),
        ("segments", "s1-1 s1-1 0 1\n", "segments table are not supported"),
    ],
)
def test_wrong_tables_are_named_and_no_command_runs(
    work: Path, bundles: Path, table: str, text: str, words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (work / "data/test_trials" / table).write_text(text)
    assert run(bundles, "data/test_trials", "out") == 2
    import re

    assert re.search(words, capsys.readouterr().err)
    assert not (work / "made").exists() and not (work / "out").exists()


def test_a_path_counts_from_the_folder_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "data").mkdir()
    for path in (tmp_path / "a.flac", tmp_path / "data/a.flac"):
        path.write_bytes(b"")
    assert audio_source(Path("data"), "a.flac", "line") == Path("data/a.flac")
    (tmp_path / "data/a.flac").unlink()
    assert audio_source(Path("data"), "a.flac", "line") == Path("a.flac")
    with pytest.raises(InputError, match="line is a command"):
        audio_source(Path("data"), "cat a.flac |", "line")


def test_rules_that_ask_for_a_speaker_are_told_by_the_tables(
    work: Path, bundles: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(bundles, "data/test_trials", "out", system="far") == 0
    said = capsys.readouterr().out
    assert "target: epsilon inf per utterance" in said
    (release,) = read_ledgers(work / "out")
    assert all(entry.utterance.unbounded and "target" in entry.losses for entry in release.entries)
    assert run(bundles, "corpora", "plain", system="far") == 2
    assert (
        "one target per speaker, and who speaks is known in a Kaldi data folder only"
        in capsys.readouterr().err
    )
    (work / "data/test_trials/spk2gender").unlink()
    assert run(bundles, "data/test_trials", "none", system="far") == 2
    assert "chooses targets by sex" in capsys.readouterr().err
    assert not (work / "none").exists() and len(list((work / "ledger").iterdir())) == 1


def test_a_speaker_of_the_pool_is_refused(
    work: Path, bundles: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (work / "data/test_trials/utt2spk").write_text("s1-1 v1\ns1-2 v1\ns2-1 s2\n")
    (work / "data/test_trials/spk2gender").write_text("v1 f\ns2 m\n")
    assert run(bundles, "data/test_trials", "out") == 2
    assert "speaker v1: is in the pool of targets" in capsys.readouterr().err
    assert not (work / "ledger").exists()
