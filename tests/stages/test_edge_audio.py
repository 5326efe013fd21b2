"""Hostile recordings through check, prepare and anonymize: each is used or refused by name, none is lost.

Each test runs on recordings made here and, where the test data is, on its folder ``edge``.
"""

from __future__ import annotations

import json
import re
import shutil
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
import soundfile

from made_corpora import vowel, write_params
from made_hostile import SILENT, Hostile
from made_speech import made_bundles
from voxveil.audio.files import SHORT_SAMPLES, read_recording
from voxveil.cli.main import main
from voxveil.corpus.split import Split
from voxveil.privacy.ledger import read_ledgers

SPEAKERS = [f"s{index:02d}" for index in range(12)]
GOOD = 2


@pytest.fixture(scope="module")
def bundles(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("bundles")
    return made_bundles(folder)


def refused_by_a_corpus(hostile: Hostile) -> dict[str, str]:
    return {**hostile.refused, **dict.fromkeys(hostile.silent, SILENT)}


def test_every_file_is_there(hostile: Hostile) -> None:
    files = {path.name for path in hostile.folder.iterdir()} - {"README.md"}
    assert files == set(hostile.names)
    assert not set(hostile.refused) & set(hostile.flags)


def test_check_says_one_line_for_each_and_counts_them_all(
    hostile: Hostile, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["corpus", "check", "--verbose", str(hostile.folder)]) == 1
    *lines, summary = capsys.readouterr().out.splitlines()
    said = dict(line.removeprefix(f"{hostile.folder}/").split(": ", 1) for line in lines)
    assert len(said) == len(lines)
    refused = refused_by_a_corpus(hostile)
    for name, reason in refused.items():
        assert said.pop(name).startswith(f"refused, {reason}")
    usable = {name: flags.split() for name, flags in hostile.flags.items() if name not in refused}
    assert said == {name: f"usable; {', '.join(flags)}" for name, flags in usable.items() if flags}
    match = re.fullmatch(r"(\d+) files: (\d+) usable \([\d.]+ s\), (\d+) refused((?:, \d+ \w+)*)", summary)
    assert match is not None
    assert [int(match[k]) for k in (1, 2, 3)] == [len(hostile.names), len(usable), len(refused)]
    counted = {flag: int(count) for count, flag in re.findall(r", (\d+) (\w+)", match[4])}
    assert counted == Counter(flag for flags in usable.values() for flag in flags)


def write_kaldi(folder: Path, hostile: Hostile) -> dict[str, str]:
    """Write a Kaldi-style corpus of 12 speakers; return the utterance id of every hostile file."""
    folder.mkdir()
    rows = []
    for index, speaker in enumerate(SPEAKERS):
        for number in range(GOOD):
            soundfile.write(folder / f"{speaker}-{number}.wav", vowel(4_000, 90.0 + 9 * index), 16_000)
            rows.append((f"{speaker}-{number}", f"{speaker}-{number}.wav", speaker))
    ids = {}
    for index, name in enumerate(hostile.names):
        speaker = SPEAKERS[index % len(SPEAKERS)]
        ids[name] = f"h{index:02d}-{speaker}"
        rows.append((ids[name], str(hostile.folder / name), speaker))
    (folder / "wav.scp").write_text("".join(f"{item} {path}\n" for item, path, _ in rows))
    (folder / "utt2spk").write_text("".join(f"{item} {speaker}\n" for item, _, speaker in rows))
    (folder / "spk2gender").write_text("".join(f"{s} {'fm'[i % 2]}\n" for i, s in enumerate(SPEAKERS)))
    return ids


def prepare(folder: Path, corpus: Path, on_bad_audio: str) -> int:
    params = write_params(folder / "params.yaml", source=str(corpus), on_bad_audio=on_bad_audio)
    outputs = [f"--out={side}={folder / 'out' / side}" for side in ("public", "private")]
    return main(["stage", "prepare", "--params", str(params), *outputs])


def test_prepare_stops_at_any_bad_file_and_leaves_nothing(
    hostile: Hostile, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    corpus = tmp_path / "corpus"
    refused = refused_by_a_corpus(hostile)
    ids = write_kaldi(corpus, hostile)
    rows = [line.split(" ", 1) for line in (corpus / "wav.scp").read_text().splitlines()]
    good = corpus / f"{SPEAKERS[0]}-0.wav"
    for name, reason in refused.items():
        # This one as it is, in place of every other hostile one a good one.
        others = set(ids.values()) - {ids[name]}
        kept = [f"{item} {good if item in others else path}\n" for item, path in rows]
        (corpus / "wav.scp").write_text("".join(kept))
        assert prepare(tmp_path, corpus, "fail") == 2
        errors = [line for line in capsys.readouterr().err.splitlines() if not line.startswith("prepare: ")]
        assert len(errors) == 1
        assert errors[0].startswith(f"voxveil: error: {hostile.folder / name}: refused, {reason}")
        assert f"(utterance {ids[name]}; prepare.on_bad_audio: skip goes on without it)" in errors[0]
        assert not (tmp_path / "out").exists() or not list((tmp_path / "out").iterdir())


def test_prepare_skips_by_name_and_loses_nothing(
    hostile: Hostile, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    ids = write_kaldi(tmp_path / "corpus", hostile)
    assert prepare(tmp_path, tmp_path / "corpus", "skip") == 0
    said = [line for line in capsys.readouterr().err.splitlines() if line.startswith("prepare: skipped ")]
    refused = refused_by_a_corpus(hostile)
    assert len(said) == len(refused)
    skipped, kept = {}, {}
    flags: Counter[str] = Counter()
    for side, splits in (("public", ("extractor", "pool", "attacker")), ("private", ("private",))):
        facts = json.loads((tmp_path / "out" / side / "corpus.json").read_text())
        exceptions = json.loads((tmp_path / "out" / side / "exceptions.json").read_text())["skipped"]
        assert facts["skipped"] == len(exceptions)
        skipped.update({entry["utterance"]: entry["reason"] for entry in exceptions})
        flags.update(facts["flags"])
        for name in splits:
            split = Split(tmp_path / "out" / side / name)
            assert len(split) == facts["splits"][name]["utterances"]
            kept.update({utterance.id: (split, utterance) for utterance in split})
    everything = {f"{speaker}-{number}" for speaker in SPEAKERS for number in range(GOOD)} | set(ids.values())
    assert set(kept) | set(skipped) == everything
    assert not set(kept) & set(skipped)
    assert set(skipped) == {ids[name] for name in refused}
    for name, reason in refused.items():
        assert skipped[ids[name]].startswith(f"{hostile.folder / name}: refused, {reason}")
    usable = [name for name in hostile.flags if name not in refused]
    expected = Counter(flag for name in usable for flag in hostile.flags[name].split())
    expected["padded"] = expected["short"]
    expected["unvoiced"] = len(hostile.unvoiced & set(usable))
    assert flags == expected
    for name in usable:
        split, utterance = kept[ids[name]]
        audio = split.audio(utterance.id)
        original = read_recording(hostile.folder / name).audio
        assert utterance.samples == max(len(original), SHORT_SAMPLES)
        # As it was read, to 16 bit: nothing is normalized, shifted or wrapped on the way.
        wanted = np.clip(original, -1, 32767 / 32768)
        np.testing.assert_allclose(audio[: len(original)], wanted, atol=1 / 65536 + 1e-7)
        voiced = (split.f0(utterance.id) > 0).mean()
        assert voiced < 0.05 if name in {*hostile.unvoiced, hostile.whispered} else voiced > 0.05


@pytest.mark.parametrize("system", ["original", "anon", "anon_dp"])
def test_anonymize_uses_every_usable_file_and_names_the_others(
    hostile: Hostile,
    bundles: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    system: str,
) -> None:
    monkeypatch.setenv("VOXVEIL_LEDGER", str(tmp_path / "register"))
    out = tmp_path / "out"
    command = ["anonymize", str(hostile.folder), str(out), "--model", str(bundles / system), "--threads", "1"]

    def lines() -> tuple[list[str], list[str]]:
        errors = [line for line in capsys.readouterr().err.splitlines() if line.startswith("voxveil: ")]
        named = [line for line in errors if ": refused, " in line]
        return named, [line for line in errors if line not in named]

    assert main(command) == 2
    named, others = lines()
    for (name, reason), line in zip(sorted(hostile.refused.items()), sorted(named), strict=True):
        assert line.startswith(f"voxveil: {hostile.folder / name}: refused, {reason}")
    bad, total = len(hostile.refused), len(hostile.names)
    assert f"error: {bad} of {total} recordings cannot be used; nothing was released" in others[-1]
    assert not out.exists()
    assert not (tmp_path / "register").exists()

    assert main([*command, "--on-bad-audio", "skip"]) == 0
    again, others = lines()
    assert again == named
    warned = {line.split(": ")[2] for line in others if line.startswith("voxveil: warning: ")}
    narrow = {name for name, flags in hostile.flags.items() if "band_limited" in flags.split()}
    assert warned == narrow | set(hostile.silent)
    made = {f"{Path(name).stem}.flac": name for name in hostile.flags}
    assert {path.name for path in out.iterdir()} == {*made, "ledger.json"}
    for output, name in made.items():
        source, info = soundfile.info(hostile.folder / name), soundfile.info(out / output)
        assert (info.samplerate, info.channels, info.format, info.subtype) == (16_000, 1, "FLAC", "PCM_16")
        assert info.frames == -(-source.frames * 16_000 // source.samplerate)
        audio = soundfile.read(out / output)[0]
        assert np.isfinite(audio).all()
        if system != "original":
            assert np.std(audio) > 0 or len(audio) == 1
    (release,) = read_ledgers(out)
    assert {entry.input for entry in release.entries} == set(hostile.flags)

    assert main([*command, "--on-bad-audio", "skip"]) == 0
    assert (
        f"nothing to do: {len(made)} outputs are there, {bad} recordings skipped" in capsys.readouterr().out
    )


def test_a_folder_of_nothing_but_bad_files_releases_nothing(
    hostile: Hostile,
    bundles: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("VOXVEIL_LEDGER", str(tmp_path / "register"))
    (tmp_path / "in").mkdir()
    for name in hostile.refused:
        shutil.copyfile(hostile.folder / name, tmp_path / "in" / name)
    words = [str(tmp_path / "in"), str(tmp_path / "out"), "--model", str(bundles / "anon_dp")]
    assert main(["anonymize", *words, "--on-bad-audio", "skip"]) == 2
    said = capsys.readouterr().err.splitlines()
    assert f"all {len(hostile.refused)} recordings were refused; nothing was released" in said[-1]
    assert not (tmp_path / "out").exists()
    assert not (tmp_path / "register").exists()
