"""Stage prepare: splits, lists, trials, facts; the same bytes for equal parameters."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import soundfile

from made_corpora import vowel, write_corpus, write_params
from made_hostile import Hostile
from voxveil.cli.main import main
from voxveil.corpus.phones import PHONES
from voxveil.corpus.split import Split
from voxveil.corpus.trials import read_trials
from voxveil.runtime.done import Done
from voxveil.runtime.errors import InputError
from voxveil.stages.run import run_stage

PUBLIC = ("extractor", "pool", "attacker")


def prepare(folder: Path, **values: object) -> dict[str, Done]:
    params = write_params(folder / "params.yaml", **values)
    return run_stage(
        "prepare", params, {}, {"public": folder / "out/public", "private": folder / "out/private"}
    )


@pytest.fixture(scope="module")
def embedded(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Done]]:
    pytest.importorskip("espeakng_loader", reason="needs the demo extra")
    folder = tmp_path_factory.mktemp("embedded")
    return folder / "out", prepare(folder)


def test_splits_hold_audio_f0_phones_and_text(embedded: tuple[Path, dict[str, Done]]) -> None:
    out, _ = embedded
    for place, speakers in (("public/extractor", 2), ("public/pool", 4), ("private/private", 4)):
        split = Split(out / place)
        assert len(split.speakers) == speakers
        assert len(split) == 3 * speakers
        for utterance in split:
            assert utterance.text
            assert len(split.audio(utterance.id)) == utterance.samples
            f0 = split.f0(utterance.id)
            assert f0.shape == (utterance.frames,)
            assert 0.4 < (f0 > 0).mean() < 0.95
            assert {phone.label for phone in split.phones(utterance.id)} <= set(PHONES)


def test_lists_are_disjoint_and_the_shared_one_is_said(embedded: tuple[Path, dict[str, Done]]) -> None:
    out, _ = embedded
    lists = json.loads((out / "public/lists.json").read_text())
    members = [set(lists["lists"][name]) for name in PUBLIC] + [set(Split(out / "private/private").speakers)]
    assert sum(len(m) for m in members) == len(set().union(*members)) == 12
    assert lists["lists"]["synthesis"] == lists["lists"]["extractor"]
    assert lists["overlaps"] == [{"lists": ["extractor", "synthesis"], "speakers": 2}]
    for name in PUBLIC:
        assert Split(out / "public" / name).speakers == tuple(lists["lists"][name])


def test_trials_are_drawn_over_the_private_split(embedded: tuple[Path, dict[str, Done]]) -> None:
    out, _ = embedded
    split = Split(out / "private/private")
    lists = read_trials(out / "private/trials", {u.id: u.speaker for u in split})
    assert set(lists.enrolments) == set(split.speakers)
    assert sum(trial.target for trial in lists.trials) == 8
    assert sum(not trial.target for trial in lists.trials) == 8


def test_facts_say_what_the_corpus_is(embedded: tuple[Path, dict[str, Done]]) -> None:
    out, _ = embedded
    public, private = (json.loads((out / side / "corpus.json").read_text()) for side in ("public", "private"))
    assert public["name"] == "embedded"
    assert public["synthetic"] and private["synthetic"] and private["public"]
    assert public["phones"] == list(PHONES)
    assert list(public["splits"]) == sorted(PUBLIC)
    assert private["splits"]["private"]["speakers_f"] == private["splits"]["private"]["speakers_m"] == 2
    assert public["skipped"] == public["clipped_samples"] == public["speakers_without_voiced_frames"] == 0


def test_equal_parameters_give_equal_bytes_with_any_number_of_workers(
    embedded: tuple[Path, dict[str, Done]], tmp_path: Path
) -> None:
    _, first = embedded
    again = prepare(tmp_path, workers=2)
    # The number of workers stands in no output.
    assert {side: done.digest for side, done in again.items()} == {s: d.digest for s, d in first.items()}


def test_files_without_phones_write_no_timing(tmp_path: Path) -> None:
    prepare(tmp_path, source=str(write_corpus(tmp_path / "corpus")))
    out = tmp_path / "out"
    assert not list(out.rglob("phones.ctm"))
    assert not list(out.rglob("text"))
    facts = json.loads((out / "public/corpus.json").read_text())
    assert (facts["name"], facts["synthetic"], facts["phones"]) == ("corpus", False, [])
    split = Split(out / "private/private")
    np.testing.assert_allclose(
        split.audio(split.utterances[0].id)[100:200].std(), vowel(6000)[100:200].std(), rtol=0.5
    )


def test_subsets_decide_who_is_private(tmp_path: Path) -> None:
    corpus = write_corpus(tmp_path / "corpus", speakers=16)
    (corpus / "safe").mkdir()
    for speaker in ("20", "21", "22", "23"):
        (corpus / "part" / speaker).rename(corpus / "safe" / speaker)
    prepare(tmp_path, source=str(corpus), public_subsets="part", private_subsets="safe")
    assert Split(tmp_path / "out/private/private").speakers == ("20", "21", "22", "23")


def test_too_few_speakers_are_refused(tmp_path: Path) -> None:
    corpus = write_corpus(tmp_path / "corpus", speakers=11)
    with pytest.raises(InputError, match=r"7 usable speakers, 8 needed \(extractor 2, pool 4, attacker 2\)"):
        prepare(tmp_path, source=str(corpus))
    assert not (tmp_path / "out/public").exists()


def test_private_file_names_stay_out_of_the_log_and_the_facts(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    corpus = write_corpus(tmp_path / "corpus", each=4)
    for path in sorted(corpus.rglob("*-0003.flac")):
        soundfile.write(path, np.zeros(8000), 16_000)
    prepare(tmp_path, source=str(corpus), public=False, on_bad_audio="skip")
    private = set(Split(tmp_path / "out/private/private").speakers)
    shown = capsys.readouterr().err + (tmp_path / "out/private/corpus.json").read_text()
    assert not [name for name in private if f"{name}-7-" in shown]
    facts = json.loads((tmp_path / "out/private/corpus.json").read_text())
    assert (facts["skipped"], facts["public"]) == (4, False)
    details = json.loads((tmp_path / "out/private/exceptions.json").read_text())["skipped"]
    assert {entry["utterance"].split("-")[0] for entry in details} == private


def test_a_private_speaker_left_with_too_little_is_refused(tmp_path: Path) -> None:
    corpus = write_corpus(tmp_path / "corpus", each=2)
    for path in corpus.rglob("*-0001.flac"):
        path.write_bytes(b"")
    with pytest.raises(InputError, match=r"speaker \d+: 1 utterances, enrolment and trial need 2"):
        prepare(tmp_path, source=str(corpus), on_bad_audio="skip")
    assert not (tmp_path / "out/private").exists()


def test_hostile_files_fail_or_are_skipped_by_name(
    tmp_path: Path, hostile: Hostile, capsys: pytest.CaptureFixture[str]
) -> None:
    corpus = write_corpus(tmp_path / "corpus", each=2)
    # Audio under a suffix that is none is no part of a corpus in this layout.
    names = [name for name in hostile.names if Path(name).suffix in (".flac", ".wav")]
    refused = [name for name in names if name in hostile.refused or name in hostile.silent]
    for index, name in enumerate(names):
        speaker = 20 + index % 12
        copy = corpus / f"part/{speaker}/7/{speaker}-7-1{index:03d}{Path(name).suffix}"
        copy.write_bytes((hostile.folder / name).read_bytes())
    params = write_params(tmp_path / "params.yaml", source=str(corpus))
    outputs = [f"--out={side}={tmp_path / 'out' / side}" for side in ("public", "private")]
    assert main(["stage", "prepare", "--params", str(params), *outputs]) == 2
    assert "refused" in capsys.readouterr().err.splitlines()[-1]
    assert not (tmp_path / "out/public").exists()
    write_params(params, source=str(corpus), on_bad_audio="skip")
    assert main(["stage", "prepare", "--params", str(params), *outputs]) == 0
    skipped = [line for line in capsys.readouterr().err.splitlines() if "skipped" in line]
    assert len(skipped) == len(refused) >= 6
    counts = [json.loads((tmp_path / "out" / s / "corpus.json").read_text()) for s in ("public", "private")]
    assert sum(facts["skipped"] for facts in counts) == len(refused)
    kept = sum(split["utterances"] for facts in counts for split in facts["splits"].values())
    assert kept == 24 + len(names) - len(refused)
    flags = {name for facts in counts for name in facts["flags"]}
    assert {"padded", "resampled", "downmixed", "band_limited", "clipped", "dc_offset", "unvoiced"} <= flags
