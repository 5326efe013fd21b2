"""Stage anonymize: what is released, what is announced, what may be listened to."""

from __future__ import annotations

import io
import shutil
import tarfile
from pathlib import Path

import pytest

from made_speech import made_bundles, write_params, write_prepared
from voxveil.corpus.split import Split
from voxveil.privacy.ledger import read_ledger, registered
from voxveil.privacy.register import FolderRegister
from voxveil.runtime.atomic import read_json
from voxveil.runtime.done import finish
from voxveil.runtime.errors import IncompleteInputError, InputError, PrivacyError
from voxveil.stages.run import run_stage

pytestmark = pytest.mark.torch


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("made")
    write_prepared(folder / "prepare")
    write_prepared(folder / "secret", public=False)
    made_bundles(folder)
    write_params(folder / "params.yaml")
    return folder


@pytest.fixture
def root(made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    shutil.copytree(made, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("VOXVEIL_LEDGER", str(tmp_path / "ledger"))
    return tmp_path


def run(root: Path, system: str, *, out: str = "out", prepare: str = "prepare") -> Path:
    inputs = {
        "model": root / "bundles" / system,
        "public": root / prepare / "public",
        "private": root / prepare / "private",
    }
    outputs = {name: root / out / name for name in ("attacker", "released", "samples")}
    run_stage("anonymize", root / "params.yaml", inputs, outputs, key=system)
    return root / out


def audio_bytes(split: Split) -> dict[str, bytes]:
    return {utterance.id: split.flac(utterance.id) for utterance in split}


@pytest.mark.parametrize("system", ["original", "mcadams", "copy", "anon", "anon_pc", "anon_dp"])
def test_every_utterance_keeps_its_samples_and_loses_its_words(root: Path, system: str) -> None:
    out = run(root, system)
    for port, source in (("released", "private/private"), ("attacker", "public/attacker")):
        made, given = Split(out / port), Split(root / "prepare" / source)
        assert [(u.id, u.speaker, u.sex, u.samples) for u in made] == [
            (u.id, u.speaker, u.sex, u.samples) for u in given
        ]
        assert not (out / port / "text").exists()
        assert not list((out / port).glob("f0-*"))
        for utterance in given:
            assert len(made.audio(utterance.id)) == utterance.samples
        same = audio_bytes(made) == audio_bytes(given)
        assert same == (system == "original")
        assert read_json(out / port / "summary.json")["utterances"] == len(given)
        assert read_json(out / port / "corpus.json")["name"] == "made"


def test_all_private_utterances_are_announced_and_no_public_one(root: Path) -> None:
    out = run(root, "anon_dp")
    release = read_ledger(out / "released/ledger.json")
    private = Split(root / "prepare/private/private")
    assert (release.purpose, release.system) == ("evaluation", "anon_dp")
    assert [entry.input for entry in release.entries] == [u.id for u in private]
    assert [entry.speaker for entry in release.entries] == [u.speaker for u in private]
    for entry, utterance in zip(release.entries, private, strict=True):
        assert entry.utterance.epsilon == pytest.approx(10 + 10 * utterance.frames)
    (announced,) = registered(FolderRegister(root / "ledger"))
    assert announced.to_json() == release.to_json()


def test_announced_before_any_noise_is_drawn(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A run that dies at its first draw is charged already, and leaves no output."""

    def dies(self: object, *args: object, **kwargs: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("voxveil.anonymize.anonymizer.Anonymizer.anonymize_private", dies)
    with pytest.raises(KeyboardInterrupt):
        run(root, "anon_dp")
    assert len(registered(FolderRegister(root / "ledger"))) == 1
    assert not (root / "out/released").exists()


def test_register_away_means_nothing_is_released(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VOXVEIL_LEDGER", str(root / "params.yaml"))

    def draws(self: object, *args: object, **kwargs: object) -> None:
        raise AssertionError("noise was drawn")

    monkeypatch.setattr("voxveil.anonymize.anonymizer.Anonymizer.anonymize_private", draws)
    with pytest.raises(PrivacyError):
        run(root, "anon_dp")
    assert not (root / "out/released").exists()


def test_rerun_draws_anew_and_is_charged_again(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    first, second = run(root, "anon_dp", out="one"), run(root, "anon_dp", out="two")
    assert "charged again" in capsys.readouterr().err
    assert len(registered(FolderRegister(root / "ledger"))) == 2
    one, two = (audio_bytes(Split(out / "released")) for out in (first, second))
    # p1-1 is a single sample: its loudness is a constant, so only its sign is left.
    assert all(one[item] != two[item] for item in one if item != "p1-1")
    # The attacker's set is public: seeded, equal, not in the register.
    assert audio_bytes(Split(first / "attacker")) == audio_bytes(Split(second / "attacker"))


def test_an_identity_system_is_repeatable(root: Path) -> None:
    first, second = run(root, "anon", out="one"), run(root, "anon", out="two")
    assert audio_bytes(Split(first / "released")) == audio_bytes(Split(second / "released"))


def test_threads_change_nothing(root: Path) -> None:
    alone = audio_bytes(Split(run(root, "anon", out="one") / "released"))
    write_params(root / "params.yaml", base={"scale": "made", "threads": 3})
    assert audio_bytes(Split(run(root, "anon", out="two") / "released")) == alone


def test_pairs_to_listen_to(root: Path) -> None:
    out = run(root, "anon_dp") / "samples"
    facts = read_json(out / "samples.json")
    assert (facts["source"], facts["system"]) == ("released", "anon_dp")
    assert facts["corpus"]["synthetic"] is True
    assert {row["sex"] for row in facts["utterances"]} == {"F", "M"}
    private = Split(root / "prepare/private/private")
    for row in facts["utterances"]:
        assert (out / row["original"]).read_bytes() == private.flac(row["utterance"])
        released = Split(root / "out/released").flac(row["utterance"])
        assert (out / row["anonymized"]).read_bytes() == released


def test_private_originals_are_shown_only_if_declared_public(root: Path) -> None:
    out = run(root, "anon_dp", prepare="secret") / "samples"
    facts = read_json(out / "samples.json")
    assert facts["source"] == "attacker"
    private = Split(root / "secret/private/private")
    secrets = {private.flac(u.id) for u in private} | {u.id.encode() for u in private}
    for path in out.iterdir():
        content = path.read_bytes()
        assert not any(secret in content for secret in secrets)
        assert not any(path.name.startswith(f"{u.id}.") for u in private)


def test_a_missing_f0_stops_the_stage_by_name(root: Path) -> None:
    """The stage never continues with the utterances that are left.

    Seen in https://github.com/Voice-Privacy-Challenge/Voice-Privacy-Challenge-2022/issues/10.
    """
    folder = root / "prepare/private/private"
    with tarfile.open(folder / "f0-000.tar") as tar:
        members = [(m, tar.extractfile(m).read()) for m in tar if not m.name.startswith("p2-1.")]
    with tarfile.open(folder / "f0-000.tar", "w") as tar:
        for member, data in members:
            tar.addfile(member, io.BytesIO(data))
    finish(root / "prepare/private", "prepare", None)
    with pytest.raises(IncompleteInputError, match="p2-1"):
        run(root, "anon_dp")
    assert not (root / "out/released").exists()
    assert not (root / "ledger").exists()


def test_mcadams_promises_nothing_and_draws_a_coefficient_per_utterance(root: Path) -> None:
    first, second = run(root, "mcadams", out="one"), run(root, "mcadams", out="two")
    release = read_ledger(first / "released/ledger.json")
    assert all(entry.utterance.unbounded for entry in release.entries)
    # Seeded by utterance in stages, like a target.
    assert audio_bytes(Split(first / "released")) == audio_bytes(Split(second / "released"))


def test_a_private_speaker_of_the_pool_stops_the_stage_before_it_costs_anything(root: Path) -> None:
    folder = root / "prepare/private/private"
    for path in folder.iterdir():
        if path.suffix in ("", ".jsonl") and path.is_file():
            path.write_text(path.read_text().replace('"p1"', '"v1"').replace(" p1\n", " v1\n"))
    finish(root / "prepare/private", "prepare", None)
    with pytest.raises(InputError, match="speaker v1: is in the pool of targets"):
        run(root, "anon_dp")
    assert not (root / "ledger").exists() and not (root / "out/released").exists()
