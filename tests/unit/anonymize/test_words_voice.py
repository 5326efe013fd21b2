"""Systems of words: OUT is a function of the words alone, whatever else a recording holds."""

from __future__ import annotations

import itertools
import json
import shutil
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
import soundfile

from made_words import WORD, StubRecognizer, use_stubs, write_words_bundle
from voxveil.anonymize.anonymizer import Anonymizer
from voxveil.anonymize.bundle import read_bundle
from voxveil.anonymize.word_recognition import Segment
from voxveil.cli.main import main
from voxveil.privacy.ledger import read_ledgers
from voxveil.runtime.atomic import read_json, write_json
from voxveil.runtime.checksums import write_sums
from voxveil.runtime.errors import InputError, PrivacyError

TEXT = "the grey man's horse stood still and waited for rain"


@dataclass(frozen=True)
class Case:
    """What two recordings of the same words may differ in."""

    rate: int
    channels: int
    level: float
    seconds: float
    subtype: str
    segments: tuple[Segment, ...]


CASES = (
    Case(16_000, 1, 0.3, 2.0, "PCM_16", (Segment(TEXT, 0.0, 2.0, "en", -0.1),)),
    Case(
        48_000,
        2,
        1.0,
        0.05,
        "FLOAT",
        (
            Segment(" The grey man\u2019s", 0.0, 0.01, "de", -2.0),
            Segment("HORSE \u2014 stood still. And", 0.01, 0.02, "fr", -0.9),
            Segment("", 0.02, 0.02),
            Segment(" waited, for rain!", 0.03, 0.05, "en", -9.0),
        ),
    ),
    Case(8_000, 1, 0.0, 121.5, "PCM_U8", tuple(Segment(word, 3.0, 2.0) for word in TEXT.upper().split())),
    Case(44_100, 1, 1e-4, 4.0, "PCM_24", (Segment(TEXT.title() + "?", 1.0, 1.0, "", 0.0),)),
)


@pytest.fixture
def bundle(tmp_path: Path) -> Path:
    return write_words_bundle(tmp_path / "models")


@pytest.fixture
def fixed_randomness(monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """Return a function that starts the public randomness of names and releases anew."""
    counter: Iterator[int] = itertools.count()

    def restart() -> None:
        nonlocal counter
        counter = itertools.count()

    monkeypatch.setattr("secrets.token_hex", lambda size=16: f"{next(counter):0{2 * size}x}")
    return restart


def answer(segments: Sequence[Segment]) -> StubRecognizer:
    return StubRecognizer(lambda audio: segments)


def tree(folder: Path) -> dict[str, bytes]:
    return {p.relative_to(folder).as_posix(): p.read_bytes() for p in folder.rglob("*") if p.is_file()}


def write_input(folder: Path, case: Case) -> None:
    """Write two recordings of noise in the format of a case."""
    for number, name in enumerate(("a.wav", "deep/b.wav")):
        shape = (round(case.rate * case.seconds), case.channels)
        noise = case.level * np.random.default_rng(number).uniform(-1, 1, shape)
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        soundfile.write(folder / name, noise, case.rate, subtype=case.subtype)


@pytest.mark.parametrize("options", [(), ("--names", "random"), ("--write", "srt,json", "--loudness", "-30")])
def test_everything_that_is_public_is_a_function_of_the_words(
    tmp_path: Path,
    bundle: Path,
    options: tuple[str, ...],
    fixed_randomness: Callable[[], None],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    seen = []
    work = tmp_path / "work"
    monkeypatch.setenv("VOXVEIL_LEDGER", str(work / "ledger"))
    for case in CASES:
        work.mkdir()
        monkeypatch.chdir(work)
        write_input(work / "in", case)
        recognizer = answer(case.segments)
        use_stubs(monkeypatch, recognizer)
        fixed_randomness()
        code = main(["anonymize", "in", "out", "--model", str(bundle), "--threads", "1", *options])
        seen.append((code, capsys.readouterr().out, tree(work / "out")))
        assert recognizer.lengths == [-(-round(case.rate * case.seconds) * 16_000 // case.rate)] * 2
        monkeypatch.chdir(tmp_path)
        shutil.rmtree(work)
    assert all(other == seen[0] for other in seen[1:])
    code, out, files = seen[0]
    assert code == 0 and "2 recordings spoken again from their words" in out
    assert len([name for name in files if name.endswith(".flac")]) == 2
    assert len(files) == (6 if "--write" in options else 2)


def test_other_words_give_other_speech(tmp_path: Path, bundle: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    use_stubs(monkeypatch, StubRecognizer(lambda audio: [Segment("one" if len(audio) > 99 else "two", 0, 1)]))
    anonymizer = Anonymizer.load(bundle)
    first, second = (anonymizer.anonymize_private(np.ones(n, np.float32)).audio for n in (99, 100))
    assert len(first) == len(second) == WORD and not np.array_equal(first, second)


def test_the_loss_is_zero_given_the_words(
    tmp_path: Path, bundle: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("VOXVEIL_LEDGER", str(tmp_path / "ledger"))
    use_stubs(monkeypatch, answer(CASES[0].segments))
    write_input(tmp_path / "in", CASES[0])
    assert main(["anonymize", "in", "out", "--model", str(bundle)]) == 0
    said = capsys.readouterr().out
    assert "real-time" not in said and "epsilon 0 nat given the recognized words" in said
    (release,) = read_ledgers(tmp_path / "out.private")
    assert not list((tmp_path / "out").glob("*.json"))
    digest = read_json(bundle / "bundle.json")["words"]["digest"]
    for entry in release.entries:
        assert set(entry.losses) == {"words"} and entry.vectors == 1
        loss = entry.losses["words"]
        assert loss.epsilon == 0 and loss.invariants == {f"recognized_words@{digest}"}
    # A second run keeps the outputs, whose length it cannot know.
    assert main(["anonymize", "in", "out", "--model", str(bundle)]) == 0
    assert "nothing to do" in capsys.readouterr().out


def test_a_kept_length_is_declared_and_padded(
    tmp_path: Path, bundle: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("VOXVEIL_LEDGER", str(tmp_path / "ledger"))
    recognizer = answer(CASES[0].segments)
    use_stubs(monkeypatch, recognizer)
    write_input(tmp_path / "in", CASES[3])
    words = ["anonymize", "in/a.wav", "out/a.flac", "--model", str(bundle), "--keep-length"]
    assert main([*words, "--pad-to", "3"]) == 0
    assert soundfile.info(tmp_path / "out/a.flac").frames == 6 * 16_000
    # What is recognized does not depend on the padding: one digest names one function of the recording.
    assert recognizer.lengths == [4 * 16_000]
    (release,) = read_ledgers(tmp_path / "out/a.private")
    assert "length@3s" in release.entries[0].losses["words"].invariants
    assert main([*words[:2], "other.flac", *words[3:]]) == 0
    assert soundfile.info(tmp_path / "other.flac").frames == 4 * 16_000


def test_without_words_there_is_a_second_of_silence(bundle: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    use_stubs(monkeypatch, answer(()))
    anonymized = Anonymizer.load(bundle).anonymize_private(np.ones(123_456, np.float32))
    assert len(anonymized.audio) == 16_000 and not anonymized.audio.any()


def test_subtitles_have_the_times_of_the_output(
    tmp_path: Path, bundle: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("VOXVEIL_LEDGER", str(tmp_path / "ledger"))
    use_stubs(monkeypatch, answer([Segment(f"{TEXT} {TEXT}", 7, 8)]))
    write_input(tmp_path / "in", CASES[0])
    assert main(["anonymize", "in", "out", "--model", str(bundle), "--write", "json,srt"]) == 0
    content = json.loads((tmp_path / "out/a.json").read_text())
    assert [row["word"] for row in content["words"]] == f"{TEXT} {TEXT}".split()
    assert content["words"][2] == {"word": "man's", "start": 0.4, "end": 0.6}
    assert content["seconds"] == soundfile.info(tmp_path / "out/a.flac").frames / 16_000
    lines = (tmp_path / "out/a.srt").read_text().splitlines()
    assert lines[:3] == ["1", "00:00:00,000 --> 00:00:02,200", f"{TEXT} the"]
    (tmp_path / "out/a.srt").unlink()
    assert main(["anonymize", "in", "out", "--model", str(bundle), "--write", "json,srt"]) == 0
    assert (tmp_path / "out/a.srt").is_file()


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--pad-to", "2"], "it goes with --keep-length"),
        (["--write", "vtt"], "must be a list of srt, json"),
    ],
)
def test_options_that_do_not_fit_are_refused(
    tmp_path: Path,
    bundle: Path,
    options: list[str],
    said: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("VOXVEIL_LEDGER", str(tmp_path / "ledger"))
    use_stubs(monkeypatch, answer(()))
    write_input(tmp_path / "in", CASES[0])
    assert (
        main(["anonymize", str(tmp_path / "in"), str(tmp_path / "out"), "--model", str(bundle), *options])
        != 0
    )
    assert said in capsys.readouterr().err
    assert not (tmp_path / "out").exists() and not (tmp_path / "out.private").exists()


def test_output_piece_by_piece_is_refused(bundle: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    use_stubs(monkeypatch, answer(()))
    pieces = Anonymizer.load(bundle).anonymize_windows([np.zeros(100, np.float32)], 100, {})
    with pytest.raises(InputError, match="would tell times"):
        list(pieces)


def test_only_released_words_are_spoken(bundle: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    use_stubs(monkeypatch, answer(()))
    system = Anonymizer.load(bundle).system
    with pytest.raises(PrivacyError, match="must be a Released value"):
        system.speak(("one", "two"))  # type: ignore[attr-defined]


def test_a_missing_or_other_recognizer_is_named_in_one_line(tmp_path: Path, bundle: Path) -> None:
    path = bundle / "bundle.json"
    facts = read_json(path)
    facts["words"] |= {"architecture": "faster_whisper", "address": "nowhere", "origin": "hub x/y@1"}
    write_json(path, facts)
    write_sums(bundle)
    with pytest.raises(InputError, match=r"nowhere: no such folder.*import hub x/y@1 .*--recognizer FOLDER"):
        Anonymizer.load(bundle)


def test_a_recognizer_with_other_settings_is_refused(bundle: Path) -> None:
    pytest.importorskip("pocketsphinx")
    with pytest.raises(InputError, match="its bundle was written for"):
        Anonymizer.load(bundle)


def test_a_changed_setting_needs_another_digest(bundle: Path) -> None:
    path = bundle / "bundle.json"
    facts = read_json(path)
    facts["words"]["settings"]["decoding"]["language"] = "de"
    write_json(path, facts)
    write_sums(bundle)
    with pytest.raises(InputError, match="not that of its settings"):
        read_bundle(bundle)
