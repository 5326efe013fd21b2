"""Anybody's folders: the plain layout, VoicePrivacy 2024 and 2026, and languages."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest

from made_external import speech, write_challenge, write_external
from voxveil.attack.external.layouts import find_external
from voxveil.attack.external.speech import External, speech_digest
from voxveil.runtime.errors import InputError


def only(external: External):
    (test,) = external.sets
    return test


def test_the_plain_layout_with_originals(tmp_path: Path) -> None:
    test = only(find_external(write_external(tmp_path / "mine")))
    assert test.name == "mine"
    assert set(test.lists.enrolments) == {"60", "61", "62", "63"}
    assert len(test.lists.trials) == 24
    assert test.train.speakers == test.original_train.speakers == tuple(str(n) for n in range(40, 46))
    assert len(test.speech.audio("60-0-0")) < len(test.original.audio("60-0-0"))


def test_without_originals_there_are_none(tmp_path: Path) -> None:
    folder = write_external(tmp_path / "mine")
    shutil.rmtree(folder / "original")
    test = only(find_external(folder))
    assert test.original is None
    assert test.original_train is None


def test_voiceprivacy_2024_joins_the_sexes(tmp_path: Path) -> None:
    found = find_external(write_challenge(tmp_path, year=2024))
    test = only(found)
    assert (test.name, found.layout) == ("libri_dev", "data folders, suffix _mine")
    sexes = {item.speaker: item.sex for item in test.speech}
    assert {sexes[trial.enrolment] for trial in test.lists.trials} == {"F", "M"}
    assert all(sexes[t.enrolment] == sexes[t.utterance.split("-")[0]] for t in test.lists.trials)
    assert len(test.lists.trials) == 24
    assert np.allclose(test.original.audio("61-0-0"), speech(61, 0, 1.0), atol=1e-4)
    assert np.allclose(test.speech.audio("61-0-0"), speech(61, 0, 1.2), atol=1e-4)


def test_voiceprivacy_2026_has_trials_of_mixed_sex(tmp_path: Path) -> None:
    found = find_external(write_challenge(tmp_path, year=2026))
    test = only(found)
    sexes = {item.speaker: item.sex for item in test.speech}
    pairs = {(sexes[t.enrolment], sexes[t.utterance.split("-")[0]]) for t in test.lists.trials}
    assert pairs == {("F", "F"), ("F", "M"), ("M", "F"), ("M", "M")}
    assert len(test.lists.trials) == 48
    assert found.notes == ("libri_dev: the mixed-sex trials hold those by sex, so they alone are used",)


@pytest.mark.parametrize("inside", [True, False], ids=["folder", "name"])
def test_language_codes(tmp_path: Path, inside: bool) -> None:
    for code, language in (("de", "german"), ("fr", "french")):
        if inside:
            write_challenge(tmp_path / "all", year=2026, name=f"{code}_x", train=f"train_{language}")
            (tmp_path / f"root/data/{code}").mkdir(parents=True)
            for path in list((tmp_path / "all/data").iterdir()):
                target = tmp_path / f"root/data/{code}" / path.name.replace(f"{code}_x", "dev")
                path.rename(target)
                lines = (target / "wav.scp").read_text().replace(f"data/{path.name}/", "")
                (target / "wav.scp").write_text(lines)
        else:
            write_challenge(tmp_path / "root", year=2026, name=f"{code}_dev", train=f"train_{language}")
    found = find_external(tmp_path / "root")
    assert [test.name for test in found.sets] == ["de_dev", "fr_dev"]
    folders = [(test.train.folder.name, test.original_train.folder.name) for test in found.sets]
    assert folders == [("train_german_mine", "train_german"), ("train_french_mine", "train_french")]
    assert all(test.original is not None for test in found.sets)


def test_anonymized_folders_alone(tmp_path: Path) -> None:
    test = only(find_external(write_challenge(tmp_path, year=2024, originals=False)))
    assert test.original is None
    assert test.original_train is None
    assert len(test.lists.trials) == 24


def two_systems(folder: Path) -> Path:
    write_challenge(folder, year=2024)
    for path in list((folder / "data").iterdir()):
        if path.name.endswith("_mine"):
            shutil.copytree(path, path.with_name(path.name.removesuffix("_mine") + "_other"))
    return folder


def test_of_several_systems_one_must_be_named(tmp_path: Path) -> None:
    two_systems(tmp_path)
    with pytest.raises(InputError, match=r"several systems \(_mine, _other\); --suffix says which"):
        find_external(tmp_path)
    test = only(find_external(tmp_path, suffix="_other"))
    assert test.train.folder.name == "train-clean-360_other"
    with pytest.raises(InputError, match="no data folder ends in '_third'"):
        find_external(tmp_path, suffix="_third")


def no_training(folder: Path) -> None:
    shutil.rmtree(folder / "data/train-clean-360_mine")


def no_trials(folder: Path) -> None:
    for part in "fm":
        shutil.rmtree(folder / f"data/libri_dev_trials_{part}_mine")


def listed_but_absent(folder: Path) -> None:
    with (folder / "data/libri_dev_trials_f/trials").open("a") as handle:
        handle.write("60 60-9-9 target\n")


def enrolled_and_tried(folder: Path) -> None:
    with (folder / "data/libri_dev_trials_f/trials").open("a") as handle:
        handle.write("60 60-0-0 target\n")


def a_command(folder: Path) -> None:
    path = folder / "data/libri_dev_enrolls_mine/wav.scp"
    path.write_text(path.read_text().replace(".wav\n", ".wav |\n", 1))


@pytest.mark.parametrize(
    ("spoil", "reason"),
    [
        (no_training, r"no training folder train\.\.\._mine for set libri_dev"),
        (no_trials, "set libri_dev has no folder libri_dev_trials_mine"),
        (listed_but_absent, r"trials:\d+: utterance 60-9-9 is not in the split"),
        (enrolled_and_tried, r"trials:\d+: utterance 60-0-0 is also enrolled \(in 60\)"),
        (a_command, r"wav\.scp:1: utterance 60-0-0 is a command, not a file; commands are never run"),
    ],
)
def test_what_is_missing_is_named(tmp_path: Path, spoil, reason: str) -> None:
    write_challenge(tmp_path, year=2024)
    spoil(tmp_path)
    with pytest.raises(InputError, match=reason):
        find_external(tmp_path)


def test_a_folder_of_something_else_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="nothing to attack"):
        find_external(tmp_path)
    with pytest.raises(InputError, match="nowhere: no such folder"):
        find_external(tmp_path / "nowhere")


def test_another_version_of_the_speech_has_another_digest(tmp_path: Path) -> None:
    folder = write_external(tmp_path / "mine")
    before = speech_digest(only(find_external(folder)).train)
    assert speech_digest(only(find_external(folder)).train) == before
    path = folder / "train/wav/40-0-0.wav"
    path.write_bytes(path.read_bytes()[:-2])
    assert speech_digest(only(find_external(folder)).train) != before
