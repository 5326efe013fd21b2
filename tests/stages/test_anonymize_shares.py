"""Anonymize in three shares: what is gathered is what one pod makes; nothing else is gathered."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from made_speech import made_bundles, write_params, write_prepared
from voxveil.config import load_params
from voxveil.corpus.split import Split
from voxveil.privacy.ledger import read_ledger, registered
from voxveil.privacy.register import FolderRegister
from voxveil.privacy.totals import speaker_totals, utterance_totals
from voxveil.runtime.atomic import read_json, write_json
from voxveil.runtime.done import Done, finish, require_done
from voxveil.runtime.errors import InputError, ParamsError, PrivacyError, VoxveilError
from voxveil.stages.context import Share
from voxveil.stages.gathering import gather_stage
from voxveil.stages.run import run_share, run_stage

pytest.importorskip("torch")

pytestmark = pytest.mark.torch

PORTS = ("attacker", "released", "samples")


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("made")
    write_prepared(folder / "prepare")
    made_bundles(folder)
    write_params(folder / "params.yaml")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("VOXVEIL_LEDGER", str(folder / "ledger-of-kept"))
        for number in (1, 2, 3):
            share(folder, "mcadams", number, out="kept")
    return folder


@pytest.fixture
def root(made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    shutil.copytree(made, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("VOXVEIL_LEDGER", str(tmp_path / "ledger"))
    return tmp_path


def inputs(root: Path, system: str) -> dict[str, Path]:
    return {
        "model": root / "bundles" / system,
        "public": root / "prepare/public",
        "private": root / "prepare/private",
    }


def whole(root: Path, system: str) -> Path:
    outputs = {port: root / "whole" / port for port in PORTS}
    run_stage("anonymize", root / "params.yaml", inputs(root, system), outputs, key=system)
    return root / "whole"


def share(root: Path, system: str, number: int, count: int = 3, *, out: str = "shares") -> Path:
    output = root / out / str(number)
    params = load_params(root / "params.yaml")
    run_share("anonymize", params, inputs(root, system), output, Share(number, count), key=system)
    return output


def gather(root: Path, system: str, folders: list[Path], *, count: int = 3) -> dict[str, Done]:
    outputs = {port: root / "gathered" / port for port in PORTS}
    return gather_stage("anonymize", system, folders, outputs, count)


def files(folder: Path) -> dict[str, bytes]:
    return {
        path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()
    }


@pytest.mark.parametrize("system", ["anon_dp", "original"])
def test_gathered_is_what_one_pod_makes(root: Path, system: str) -> None:
    alone = whole(root, system)
    parts = [share(root, system, number) for number in (1, 2, 3)]
    done = gather(root, system, parts[::-1])
    gathered = root / "gathered"
    # Public speech has seeded noise: the same bytes, so the same digest.
    assert files(gathered / "attacker") == files(alone / "attacker")
    for port in PORTS:
        record = require_done(gathered / port, port, digest=done[port].digest)
        assert (record.stage, record.key, record.output) == ("anonymize", system, port)
        assert set(files(gathered / port)) == set(files(alone / port))
    texts = ("manifest.jsonl", "wav.scp", "utt2spk", "utt2dur", "spk2utt", "spk2gender", "corpus.json")
    one, two = files(alone / "released"), files(gathered / "released")
    if system == "original":
        texts = (*texts, "audio-000.tar")
    for name in texts[1:] if system == "anon_dp" else texts:
        assert one[name] == two[name], name
    assert [u.id for u in Split(gathered / "released")] == [u.id for u in Split(alone / "released")]
    for name in ("format", "system", "utterances"):
        key = read_json(gathered / "released/summary.json")[name]
        assert key == read_json(alone / "released/summary.json")[name]
    samples = [read_json(folder / "samples/samples.json") for folder in (alone, gathered)]
    assert samples[0] == samples[1]
    for row in samples[0]["utterances"]:
        heard = Split(gathered / "released").flac(row["utterance"])
        assert (gathered / "samples" / row["anonymized"]).read_bytes() == heard


def test_each_share_is_charged_for_its_own_and_the_totals_are_the_same(root: Path) -> None:
    register = FolderRegister(root / "ledger")
    parts = []
    for number in (1, 2, 3):
        parts.append(share(root, "anon_dp", number))
        own = {utterance.id for utterance in Split(parts[-1] / "released")}
        releases = {release.id: release for release in registered(register)}
        assert len(releases) == number
        announced = releases[read_ledger(parts[-1] / "released/ledger.json").id]
        assert {entry.input for entry in announced.entries} == own
    gather(root, "anon_dp", parts)
    ledger = read_ledger(root / "gathered/released/ledger.json")
    private = Split(root / "prepare/private/private")
    assert [entry.input for entry in ledger.entries] == [utterance.id for utterance in private]
    assert set(ledger.parts) == {release.id for release in registered(register)}
    charged = {totals: totals(registered(register)) for totals in (utterance_totals, speaker_totals)}
    shutil.rmtree(root / "ledger")
    alone = read_ledger(whole(root, "anon_dp") / "released/ledger.json")
    for totals, found in charged.items():
        assert found == totals([alone]) == totals([ledger]) == totals(registered(register))


def test_a_share_started_again_is_charged_again(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    share(root, "anon_dp", 2)
    parts = [share(root, "anon_dp", number) for number in (1, 2, 3)]
    assert "charged again" in capsys.readouterr().err
    own = {utterance.id for utterance in Split(parts[1] / "released")}
    register = FolderRegister(root / "ledger")
    for total in utterance_totals(registered(register)):
        assert total.releases == (2 if total.inputs[0] in own else 1)
    gather(root, "anon_dp", parts)
    entries = read_ledger(root / "gathered/released/ledger.json").entries
    assert {entry.input for entry in entries if entry.earlier} == own


def test_a_share_dies_charged_and_leaves_nothing(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def dies(self: object, *args: object, **kwargs: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("voxveil.anonymize.anonymizer.Anonymizer.anonymize_private", dies)
    with pytest.raises(KeyboardInterrupt):
        share(root, "anon_dp", 1)
    assert len(registered(FolderRegister(root / "ledger"))) == 1
    assert not (root / "shares/1").exists()


def test_a_speakers_voice_is_that_of_the_first_utterance_in_any_share(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from voxveil.stages.anonymize import _Voices

    asked: dict[str, set[str]] = {}
    split = Split(root / "prepare/private/private")
    source = _Voices.source

    def note(self: _Voices, utterance: object, audio: object) -> object:
        first = self._first[utterance.speaker]  # type: ignore[attr-defined]
        asked.setdefault(utterance.speaker, set()).add(first)  # type: ignore[attr-defined]
        return source(self, utterance, audio)  # type: ignore[arg-type]

    monkeypatch.setattr(_Voices, "source", note)
    for number in (1, 2, 3):
        share(root, "anon_dp", number)
    for speaker in split.speakers:
        assert asked[speaker] == {min(u.id for u in split if u.speaker == speaker)}


def test_a_share_is_no_output_of_the_stage(root: Path) -> None:
    part = share(root, "anon_dp", 1)
    assert read_json(part / "_DONE.json")["stage"] == "anonymize_share"
    assert not list(part.glob("*/_DONE.json"))
    with pytest.raises(VoxveilError, match=r"output 'made' of anonymize_share"):
        run_stage(
            "train_attacker",
            root / "params.yaml",
            {"attacker": part},
            {name: root / "x" / name for name in ("model", "metrics", "curve")},
            key="anon_dp",
        )


@pytest.fixture
def parts(root: Path) -> list[Path]:
    return [root / "kept" / str(number) for number in (1, 2, 3)]


def again(part: Path) -> None:
    finish(part, "anonymize_share", "mcadams", "made")


def change(part: Path, file: str, spoil: Callable[[dict], object]) -> None:
    content = read_json(part / file)
    spoil(content)
    write_json(part / file, content)
    again(part)


def move_first(parts: list[Path], *, twice: bool) -> None:
    """Take an utterance of the second share's released speech from its list, or give it to the first too."""
    places = read_json(parts[1] / "released/part.json")["places"]
    item = sorted(places)[0]
    if twice:
        change(parts[0], "released/part.json", lambda content: content["places"].update({item: places[item]}))
    else:
        change(parts[1], "released/part.json", lambda content: content["places"].pop(item))


CASES = {
    "missing": (lambda root, parts: parts.pop(1), "share 2-of-3 is missing \\(1 of 3 are\\)"),
    "none": (lambda root, parts: parts.clear(), "share 1-of-3 is missing \\(3 of 3 are\\)"),
    "twice": (lambda root, parts: parts.append(parts[0]), "share 1-of-3 is there twice"),
    "other count": (
        lambda root, parts: parts.__setitem__(0, share(root, "mcadams", 1, 2, out="two")),
        "is share 1-of-2, must be one of 3",
    ),
    "other input": (
        lambda root, parts: change(parts[2], "share.json", lambda c: c["inputs"].update(private="0")),
        "1-of-3 and 3-of-3 were made from different input private",
    ),
    "other params": (
        lambda root, parts: change(parts[2], "share.json", lambda c: c.update(fingerprint="0")),
        "1-of-3 and 3-of-3 were made with different parameters or versions",
    ),
    "other system": (
        lambda root, parts: parts.__setitem__(0, share(root, "anon", 1, out="anon")),
        r"anonymize_share\[anon\], must be a share of anonymize\[mcadams\]",
    ),
    "unfinished": (lambda root, parts: (parts[0] / "_DONE.json").unlink(), "is unfinished"),
    "changed": (
        lambda root, parts: (parts[0] / "released/utt2spk").write_text("x"),
        "utt2spk changed after its stage finished",
    ),
    "utterance missing": (
        lambda root, parts: move_first(parts, twice=False),
        "released utterance: 1 of 6 are in no share",
    ),
    "utterance twice": (
        lambda root, parts: move_first(parts, twice=True),
        r"released utterance p\d-\d: is in two shares, 1 and 2 of 3",
    ),
    "not a share": (
        lambda root, parts: change(parts[0], "share.json", lambda c: c.pop("fingerprint")),
        "share.json: not of a share of a stage's work",
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_what_is_not_whole_is_not_gathered(root: Path, parts: list[Path], case: str) -> None:
    spoil, why = CASES[case]
    spoil(root, parts)
    with pytest.raises(VoxveilError, match=why):
        gather(root, "mcadams", parts)
    assert not (root / "gathered/released").exists()


def test_speech_that_was_not_announced_is_not_gathered(root: Path, parts: list[Path]) -> None:
    shutil.copy(parts[0] / "released/ledger.json", parts[1] / "released/ledger.json")
    again(parts[1])
    with pytest.raises(PrivacyError, match="releases to gather"):
        gather(root, "mcadams", parts)
    assert not (root / "gathered/released").exists()


def test_more_shares_than_utterances_are_refused_before_they_cost_anything(root: Path) -> None:
    with pytest.raises(InputError, match="private: 6 utterances are too few for 7 shares"):
        share(root, "anon_dp", 1, 7)
    assert not (root / "ledger").exists()


def test_a_stage_that_cannot_be_shared_is_refused(root: Path) -> None:
    with pytest.raises(InputError, match="stage bundle: its work cannot be shared"):
        run_share("bundle", load_params(root / "params.yaml"), {}, root / "x", Share(1, 2), key="anon")
    with pytest.raises(InputError, match="stage bundle: has no shares"):
        gather_stage("bundle", "anon", [], {"model": root / "x"}, 2)
    with pytest.raises(ParamsError, match="no system 'none'"):
        params = load_params(root / "params.yaml")
        run_share("anonymize", params, inputs(root, "anon"), root / "x", Share(1, 2), key="none")
