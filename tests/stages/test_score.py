import json
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from made_voices import write_voices
from voxveil.attack.attackers.ecapa import EcapaAttacker
from voxveil.attack.attackers.registry import load_attacker
from voxveil.attack.fusion import Fusion
from voxveil.config import load_params, parse_params
from voxveil.config.compose import params_text
from voxveil.corpus.split import Split
from voxveil.corpus.trials import draw_trials, write_trials
from voxveil.features.speaker.encoder import EncoderSize, SpeakerEncoder, SpeakerNetwork
from voxveil.metrics.evaluation import read_evaluation
from voxveil.runtime.done import finish
from voxveil.runtime.errors import VoxveilError
from voxveil.stages.context import Share
from voxveil.stages.gathering import gather_stage
from voxveil.stages.run import run_share, run_stage
from voxveil.training.loop import seeded

pytest.importorskip("torch")
pytestmark = pytest.mark.torch


@pytest.fixture(scope="module")
def params(tmp_path_factory: pytest.TempPathFactory) -> Path:
    content = {
        "base": {"threads": 1},
        "systems": {"original": {"kind": "original"}, "anon": {}},
        "pitch_variants": {"plain": {}},
        "content_variants": {"plain": {}},
        "score": {"rank_inputs": 2},
    }
    path = tmp_path_factory.mktemp("params") / "params.yaml"
    path.write_text(params_text(parse_params(content)))
    return path


def write_attacker(folder: Path, speakers: list[str], system: str = "anon") -> Path:
    (folder / "ecapa").mkdir(parents=True)
    with seeded(1, "test", system):
        encoder = SpeakerEncoder(SpeakerNetwork(EncoderSize(16, 16)))
    centre = np.random.default_rng(1).normal(0, 0.1, 16)
    training = "original" if system == "original" else "anonymized"
    EcapaAttacker(encoder, speakers, training, centre).save(folder / "ecapa")
    finish(folder, "train_attacker", system)
    return folder


@pytest.fixture
def inputs(tmp_path: Path) -> dict[str, Path]:
    private = tmp_path / "private"
    split = write_voices(private / "private", range(30, 34), 4, seconds=0.4)
    write_trials(private / "trials", draw_trials(split, 2, seed=1))
    finish(private, "prepare", None)
    released = tmp_path / "released"
    write_voices(released, range(30, 34), 4, seconds=0.4)
    finish(released, "anonymize", "anon")
    attacker = write_attacker(tmp_path / "attacker", ["s90", "s91"])
    first = write_attacker(tmp_path / "original_attacker", ["s90", "s91"], "original")
    public = tmp_path / "public"
    write_voices(public / "attacker", range(2), 1, seconds=0.1)
    finish(public, "prepare", None)
    folders = {"released": released, "private": private, "public": public}
    return {"attacker": attacker, "original_attacker": first, **folders}


def score(params: Path, inputs: dict[str, Path], out: Path, key: str = "anon") -> Path:
    run_stage("score", params, inputs, {"scores": out}, key=key)
    return out / "ecapa" / "semi_informed"


@pytest.fixture(autouse=True)
def in_a_folder_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def test_scoring_twice_gives_identical_files_that_the_metrics_read(
    params: Path, inputs: dict[str, Path], tmp_path: Path
) -> None:
    first = score(params, inputs, tmp_path / "one")
    second = score(params, inputs, tmp_path / "two")
    for path in first.iterdir():
        assert path.read_bytes() == (second / path.name).read_bytes()
    evaluation = read_evaluation(
        first / "scores.txt",
        trials=first / "trials.txt",
        utt2spk=first / "utt2spk",
        enrolments=first / "enrol.scp",
        rank=first / "rank.npz",
    )
    assert evaluation.scores.n_speakers == 4
    assert len(evaluation.scores.target) == 8
    assert len(evaluation.scores.nontarget) == 8, "nontargets are of the same sex"
    assert evaluation.ranks.scores.shape == (8, 4)


def test_conditions_say_how_the_attack_was_made(
    params: Path, inputs: dict[str, Path], tmp_path: Path
) -> None:
    content = json.loads((score(params, inputs, tmp_path / "one") / "conditions.json").read_text())
    assert (content["attacker"], content["scenario"]) == ("ecapa", "semi_informed")
    assert content["enrolment"] == content["trial"] == content["training"] == "anonymized"
    assert content["counts"]["short_clips_repeated"] == 16, "0.4 s is below the attacker's minimum"
    inputs = {**inputs, "attacker": inputs["original_attacker"]}
    finish(inputs["released"], "anonymize", "original")
    original = json.loads(
        (score(params, inputs, tmp_path / "two", key="original") / "conditions.json").read_text()
    )
    assert original["enrolment"] == original["trial"] == "original"


def test_the_scores_are_those_of_the_released_audio(
    params: Path, inputs: dict[str, Path], tmp_path: Path
) -> None:
    folder = score(params, inputs, tmp_path / "one")
    encoder = SpeakerEncoder.load(inputs["attacker"] / "ecapa")
    with np.load(inputs["attacker"] / "ecapa" / "centre.npz") as stored:
        centre = stored["centre"]
    released = Split(inputs["released"])

    def vector(item: str) -> np.ndarray:
        moved = encoder.embed(released.audio(item)).astype(float) - centre
        return moved / np.linalg.norm(moved)

    enrolments = {}
    for line in (folder / "enrol.scp").read_text().splitlines():
        name, *items = line.split()
        mean = np.sum([vector(item) for item in items], axis=0)
        enrolments[name] = mean / np.linalg.norm(mean)
    lines = (folder / "scores.txt").read_text().splitlines()
    assert len(lines) == len((folder / "trials.txt").read_text().splitlines()) > 0
    for line in lines:
        name, item, value = line.split()
        expected = float(enrolments[name] @ vector(item))
        assert float(value) == pytest.approx(expected, abs=1e-6)


def overlap_in_trials(inputs: dict[str, Path]) -> None:
    folder = inputs["private"] / "trials"
    name, item, *_ = (folder / "enrol.scp").read_text().split()
    with (folder / "trials.txt").open("a") as handle:
        handle.write(f"{name} {item} target\n")
    finish(inputs["private"], "prepare", None)


def attacker_knows_a_private_speaker(inputs: dict[str, Path]) -> None:
    inputs["attacker"] = write_attacker(inputs["attacker"].parent / "other", ["s31", "s90"])


def release_without_an_utterance(inputs: dict[str, Path]) -> None:
    folder = inputs["released"]
    for path in folder.iterdir():
        path.unlink()
    write_voices(folder, range(30, 34), 3, seconds=0.4)
    finish(folder, "anonymize", "anon")


def another_model(inputs: dict[str, Path]) -> None:
    path = inputs["attacker"] / "ecapa" / "model.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "attacker": "plda"}))
    finish(inputs["attacker"], "train_attacker", "anon")


@pytest.mark.parametrize(
    ("spoil", "reason"),
    [
        (overlap_in_trials, r"trials\.txt:\d+: utterance s30-\d is also enrolled"),
        (attacker_knows_a_private_speaker, "speaker s31: the attacker was trained on a speaker"),
        (release_without_an_utterance, r"utterance s\d\d-3: not in .*released"),
        (another_model, "not an attacker, its kind is 'plda'; kinds: ecapa, "),
    ],
)
def test_what_would_give_a_wrong_score_is_refused_and_nothing_written(
    params: Path,
    inputs: dict[str, Path],
    tmp_path: Path,
    spoil: Callable[[dict[str, Path]], None],
    reason: str,
) -> None:
    spoil(inputs)
    with pytest.raises(VoxveilError, match=reason):
        score(params, inputs, tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_every_scenario_says_what_it_compares(params: Path, inputs: dict[str, Path], tmp_path: Path) -> None:
    score(params, inputs, tmp_path / "out")
    found = {}
    for folder in sorted((tmp_path / "out" / "ecapa").iterdir()):
        content = json.loads((folder / "conditions.json").read_text())
        found[folder.name] = tuple(content[name] for name in ("training", "enrolment", "trial"))
    assert found == {
        "ignorant": ("original", "original", "anonymized"),
        "lazy_informed": ("original", "anonymized", "anonymized"),
        "semi_informed": ("anonymized", "anonymized", "anonymized"),
    }


def test_the_original_system_has_one_row_that_no_anonymizer_moves(
    params: Path, inputs: dict[str, Path], tmp_path: Path
) -> None:
    inputs = {**inputs, "attacker": inputs["original_attacker"]}
    finish(inputs["released"], "anonymize", "original")
    out = score(params, inputs, tmp_path / "out", key="original")
    assert [folder.name for folder in out.parent.iterdir()] == ["semi_informed"]


def test_ignorant_enrols_original_speech(params: Path, inputs: dict[str, Path], tmp_path: Path) -> None:
    score(params, inputs, tmp_path / "same")
    # Other released speech: what is enrolled from the originals stays, what is tested moves.
    for path in inputs["released"].iterdir():
        path.unlink()
    write_voices(inputs["released"], range(30, 34), 4, seconds=0.6)
    finish(inputs["released"], "anonymize", "anon")
    score(params, inputs, tmp_path / "other")
    attacker = load_attacker(inputs["original_attacker"] / "ecapa")
    private, released = Split(inputs["private"] / "private"), Split(inputs["released"])
    lines = (tmp_path / "other/ecapa/ignorant/scores.txt").read_text().split("\n")[0].split()
    enrolment, utterance, value = lines[0], lines[1], float(lines[2])
    lists = {
        line.split()[0]: line.split()[1:]
        for line in (inputs["private"] / "trials" / "enrol.scp").read_text().splitlines()
    }
    mean = np.mean([attacker.embed(private.audio(i), i).astype(float) for i in lists[enrolment]], axis=0)
    expected = float(mean / np.linalg.norm(mean) @ attacker.embed(released.audio(utterance), utterance))
    assert value == pytest.approx(expected, abs=1e-6)


def test_an_attacker_of_anonymized_speech_is_not_the_original_one(
    params: Path, inputs: dict[str, Path], tmp_path: Path
) -> None:
    wrong = write_attacker(tmp_path / "wrong", ["s90", "s91"])
    finish(wrong, "train_attacker", "original")
    with pytest.raises(VoxveilError, match="was trained on anonymized speech, must be original"):
        score(params, {**inputs, "original_attacker": wrong}, tmp_path / "out")
    assert not (tmp_path / "out").exists()


def share(params: Path, inputs: dict[str, Path], out: Path, which: Share, key: str = "anon") -> Path:
    run_share("score", load_params(params), inputs, out, which, key=key)
    return out


def with_seeds_and_fusion(folder: Path, system: str) -> None:
    """Give an attacker a second seed and a fusion."""
    kept = write_attacker(folder.with_name(f"{folder.name}-2"), ["s90", "s91"], system)
    shutil.copytree(kept / "ecapa", folder / "ecapa.seed2")
    Fusion(("ecapa",), np.array([0.1]), np.array([0.3]), np.array([1.7]), 0.2, 4, (4, 12)).save(folder)
    finish(folder, "train_attacker", system)


def with_transcripts(inputs: dict[str, Path]) -> None:
    """Give private and public speech transcripts."""
    for folder, speakers, utterances in (
        ("private/private", range(30, 34), 4),
        ("public/attacker", range(2), 1),
    ):
        name, _, split = folder.partition("/")
        shutil.rmtree(inputs[name] / split)
        seconds = 0.4 if name == "private" else 0.1
        write_voices(inputs[name] / split, speakers, utterances, seconds=seconds, text="THE WORDS OF")
        finish(inputs[name], "prepare", None)


def test_transcripts_are_attacked_too_in_the_first_share(
    params: Path, inputs: dict[str, Path], tmp_path: Path
) -> None:
    before = score(params, inputs, tmp_path / "before").parent.parent
    assert not (before / "words_alone").exists()
    with_transcripts(inputs)
    whole = score(params, inputs, tmp_path / "whole").parent.parent
    folder = whole / "words_alone/transcripts"
    found = read_evaluation(folder / "scores.txt", folder / "trials.txt", rank=folder / "rank.npz")
    assert found.scores.target.min() > found.scores.nontarget.max(), "each speaker's name is in the words"
    parts = [share(params, inputs, tmp_path / f"share{n}", Share(n, 2)) for n in (1, 2)]
    assert [(part / "scores/words_alone").is_dir() for part in parts] == [True, False]
    gather_stage("score", "anon", parts, {"scores": tmp_path / "gathered"}, 2)
    for path in (path for path in whole.rglob("*") if path.is_file() and path.name != "_DONE.json"):
        assert path.read_bytes() == (tmp_path / "gathered" / path.relative_to(whole)).read_bytes()


@pytest.mark.parametrize("count", [2, 3])
def test_scenarios_of_several_pods_are_the_files_of_one(
    params: Path, inputs: dict[str, Path], tmp_path: Path, count: int
) -> None:
    with_seeds_and_fusion(inputs["attacker"], "anon")
    with_seeds_and_fusion(inputs["original_attacker"], "original")
    score(params, inputs, tmp_path / "whole")
    parts = [share(params, inputs, tmp_path / f"share{n}", Share(n, count)) for n in range(1, count + 1)]
    held = [{path.name for path in part.glob("scores/*/*") if path.is_dir()} for part in parts]
    # What embeds the same speech by the same attackers stays together as long as it can.
    assert held[0] == {"semi_informed"}
    assert held[1:] == ([{"ignorant", "lazy_informed"}] if count == 2 else [{"ignorant"}, {"lazy_informed"}])
    gather_stage("score", "anon", parts[::-1], {"scores": tmp_path / "gathered"}, count)
    one, two = (
        {path.relative_to(folder): path.read_bytes() for path in folder.rglob("*") if path.is_file()}
        for folder in (tmp_path / "whole", tmp_path / "gathered")
    )
    assert one == two
    assert Path("fusion/ignorant/scores.txt") in one


def test_scenarios_that_are_missing_or_there_twice_are_refused(
    params: Path, inputs: dict[str, Path], tmp_path: Path
) -> None:
    parts = [share(params, inputs, tmp_path / f"share{n}", Share(n, 2)) for n in (1, 2)]
    for scenarios, why in (
        ({}, "scenario: 1 of 3 are in no share"),
        ({"semi_informed": 0, "ignorant": 1}, "scenario ignorant: is in two shares, 1 and 2 of 2"),
    ):
        content = {"format": 1, "of": 3, "places": scenarios}
        (parts[0] / "scores/part.json").write_text(json.dumps(content))
        finish(parts[0], "score_share", "anon", "made")
        with pytest.raises(VoxveilError, match=why):
            gather_stage("score", "anon", parts, {"scores": tmp_path / "gathered"}, 2)
        assert not (tmp_path / "gathered").exists()


def test_a_scenario_is_not_divided(params: Path, inputs: dict[str, Path], tmp_path: Path) -> None:
    with pytest.raises(VoxveilError, match=r"cluster\.score_shards: got 4, but system anon is attacked in 3"):
        share(params, inputs, tmp_path / "out", Share(4, 4))
    original = {**inputs, "attacker": inputs["original_attacker"]}
    finish(inputs["released"], "anonymize", "original")
    with pytest.raises(VoxveilError, match="got 2, but system original is attacked in 1 scenarios"):
        share(params, original, tmp_path / "out", Share(1, 2), key="original")
    assert not (tmp_path / "out").exists()
