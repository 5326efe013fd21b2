"""The outputs of a chain as test sets: every released system, the originals beside it, nothing unfinished."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from made_external import TESTED, TRAIN, speech, trial_lines, utterances
from voxveil.attack.external.layouts import find_external
from voxveil.audio.files import encode_flac
from voxveil.cli.main import main
from voxveil.corpus.split import SplitWriter, Utterance
from voxveil.runtime.done import finish
from voxveil.runtime.errors import VoxveilError

pytest.importorskip("torch")
pytestmark = pytest.mark.torch

ENROLLED, TRIED, TRAINING = (
    utterances(TESTED, range(2)),
    utterances(TESTED, range(2, 4)),
    utterances(TRAIN, range(3)),
)


def write_split(folder: Path, items: list[tuple[str, int, int]], shift: float) -> None:
    with SplitWriter(folder) as writer:
        for name, speaker, index in items:
            audio = speech(speaker, index, shift)
            flac, _ = encode_flac(audio, name)
            writer.add(Utterance(name, str(speaker), "FM"[speaker % 2], len(audio)), flac)


@pytest.fixture
def outputs(tmp_path: Path) -> Path:
    folder = tmp_path / "outputs"
    write_split(folder / "prepare/public/attacker", TRAINING, 1.0)
    write_split(folder / "prepare/private/private", [*ENROLLED, *TRIED], 1.0)
    trials = folder / "prepare/private/trials"
    trials.mkdir()
    models = {s: [name for name, speaker, _ in ENROLLED if speaker == s] for s in TESTED}
    (trials / "enrol.scp").write_text("".join(f"{s} {' '.join(m)}\n" for s, m in models.items()))
    (trials / "trials.txt").write_text("".join(trial_lines(TRIED, mixed=True)))
    for part in ("public", "private"):
        finish(folder / "prepare" / part, "prepare", None, part)
    for system, shift in (("untouched", 1.0), ("anon", 1.3), ("anon_dp", 0.8)):
        write_split(folder / "anonymize" / system / "released", [*ENROLLED, *TRIED], shift)
        write_split(folder / "anonymize" / system / "attacker", TRAINING, shift)
        for part in ("released", "attacker"):
            finish(folder / "anonymize" / system / part, "anonymize", system, part)
    return folder


def test_every_system_but_the_original_is_a_set_with_originals(outputs: Path) -> None:
    found = find_external(outputs)
    assert [test.name for test in found.sets] == ["anon", "anon_dp"]
    for test in found.sets:
        assert len(test.lists.trials) == len(TESTED) * len(TRIED)
        assert test.train.folder == outputs / "anonymize" / test.name / "attacker"
        assert test.original is not None and test.original_train is not None
        assert set(test.train.speakers).isdisjoint(test.speech.speakers)
        name = TRIED[0][0]
        assert len(test.speech.audio(name)) != len(test.original.audio(name)), "anonymized, not the original"
    (one,) = find_external(outputs, systems=("anon_dp",)).sets
    assert one.name == "anon_dp"


def test_one_command_attacks_all_of_them(outputs: Path, tmp_path: Path) -> None:
    sizes = ("channels=8", "embedding=16", "steps=8", "batch=8", "crop_seconds=0.5")
    options = ["--attackers=ecapa", "--seeds=1", "--replicates=20", "--threads=1", "--no-figures"]
    assert (
        main(["attack", str(outputs), f"--out={tmp_path / 'out'}", *options, *(f"--set={s}" for s in sizes)])
        == 0
    )
    sets = json.loads((tmp_path / "out/result.json").read_text())["sets"]
    assert [(each["set"], len(each["attacks"])) for each in sets] == [("anon", 4), ("anon_dp", 4)]
    # The original attacker is trained once for both.
    assert len(list((tmp_path / "out/attackers").glob("ecapa-original-*"))) == 1
    assert len(list((tmp_path / "out/attackers").glob("ecapa-anonymized-*"))) == 2


@pytest.mark.parametrize(
    ("systems", "said"),
    [
        (("mine",), "no system mine to attack; there is: anon, anon_dp"),
        (("untouched",), "no system untouched to attack; there is: anon, anon_dp"),
    ],
)
def test_a_system_that_is_not_there_is_named(outputs: Path, systems: tuple[str, ...], said: str) -> None:
    with pytest.raises(VoxveilError, match=said):
        find_external(outputs, systems=systems)


def test_an_unfinished_or_changed_output_is_not_attacked(outputs: Path) -> None:
    done = outputs / "anonymize/anon/released/_DONE.json"
    text = done.read_text()
    done.unlink()
    with pytest.raises(VoxveilError, match=r"anon/released is unfinished"):
        find_external(outputs)
    done.write_text(text)
    (outputs / "prepare/private/trials/trials.txt").write_text("")
    with pytest.raises(VoxveilError, match=r"trials\.txt changed after its stage finished"):
        find_external(outputs)


def test_options_of_other_layouts_are_refused(outputs: Path, tmp_path: Path) -> None:
    with pytest.raises(VoxveilError, match="outputs of a chain; they hold lists"):
        find_external(outputs, lists=tmp_path)
    (tmp_path / "other/test").mkdir(parents=True)
    with pytest.raises(VoxveilError, match="--systems chooses from the outputs of a chain"):
        find_external(tmp_path / "other", systems=("anon",))
