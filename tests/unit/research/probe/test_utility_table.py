"""U_ASR trained on and heard: speech with its spectrum turned is another language until it is learnt."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from made_phones import write_params, write_phone_split
from voxveil.audio.files import encode_flac
from voxveil.cli.main import main
from voxveil.config import load_params
from voxveil.corpus.split import Split, SplitWriter
from voxveil.runtime.done import finish

pytest.importorskip("torch")
pytestmark = pytest.mark.torch


def turned(source: Path, target: Path, *, cut: int = 0) -> Path:
    """Write a split with every spectrum turned round (high for low): the same words, in another voice."""
    with SplitWriter(target) as writer:
        for utterance in Split(source):
            audio = Split(source).audio(utterance.id)
            sign = np.where(np.arange(len(audio)) % 2, -1, 1)
            flac = encode_flac((audio * sign)[: len(audio) - cut].astype(np.float32), utterance.id)[0]
            writer.add(
                type(utterance)(utterance.id, utterance.speaker, utterance.sex, utterance.samples - cut), flac
            )
    return target


@pytest.fixture(scope="module")
def outputs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("outputs")
    write_phone_split(folder / "prepare/public/attacker", range(6), 6)
    write_phone_split(folder / "prepare/private/private", range(8, 12), 3)
    for side in ("public", "private"):
        finish(folder / "prepare" / side, "prepare", None)
    made = folder / "anonymize/anon"
    finish(turned(folder / "prepare/public/attacker", made / "attacker"), "anonymize", "anon", "attacker")
    finish(turned(folder / "prepare/private/private", made / "released"), "anonymize", "anon", "released")
    write_params(folder / "params.yaml")
    return folder


def table_of(outputs: Path, out: Path, *more: str) -> int:
    params = f"--params={outputs / 'params.yaml'}"
    options = [f"--outputs={outputs}", params, f"--out={out}", *more]
    return main(["probe", "utility", "--system=anon", *options])


def test_what_is_trained_on_is_what_is_understood(
    outputs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert table_of(outputs, tmp_path / "out") == 0
    found = json.loads((tmp_path / "out/u_asr.json").read_text())
    cells = {(cell["trained"], cell["heard"]): cell["phones"] for cell in found["cells"]}
    u_asr = {name: cell["u_asr"] for name, cell in cells.items()}
    for state, other in (("original", "anonymized"), ("anonymized", "original")):
        assert u_asr[state, state] > u_asr[state, other] + 30
    for cell in cells.values():
        assert cell["u_asr"] == pytest.approx(100 - cell["value"])
        low, high = cell["u_asr_ci95"]
        assert low <= cell["u_asr"] <= high
        assert cell["speakers"] == 4
    assert "normalisation" in found
    assert found["recognizer"].startswith("hybrid")
    shown = capsys.readouterr().out.splitlines()
    assert shown[0].startswith("U_ASR by phones")
    assert [line.split()[0] for line in shown[3:5]] == ["original", "anonymized"]


def test_u_asr_is_not_clipped() -> None:
    from voxveil.research.probe.speeches import u_asr

    found = u_asr({"value": 140.0, "ci95": [120.0, 160.0]})
    assert (found["u_asr"], found["u_asr_ci95"]) == (-40.0, [-60.0, -20.0])
    assert u_asr({"value": None, "ci95": None})["u_asr"] is None


def test_speech_of_another_length_is_refused(outputs: Path, tmp_path: Path) -> None:
    from voxveil.research.probe.speeches import Speeches
    from voxveil.research.probe.utility import utility_table
    from voxveil.runtime.errors import IncompleteInputError

    private = Split(outputs / "prepare/private/private")
    short = turned(private.folder, tmp_path / "short", cut=400)
    public, made = Split(outputs / "prepare/public/attacker"), outputs / "anonymize/anon"
    speeches = Speeches(public, Split(made / "attacker"), private, Split(short))
    with pytest.raises(IncompleteInputError, match="phone timing does not fit"):
        utility_table(speeches, load_params(outputs / "params.yaml"), tmp_path / "kept")


def test_a_recognizer_that_knows_nothing_is_a_setup_fault() -> None:
    from voxveil.research.probe.utility import _require_sane
    from voxveil.runtime.errors import InputError

    cell = {"phones": {"value": 97.0}, "words": None}
    with pytest.raises(InputError, match=r"97\.0 % errors in phones of original speech"):
        _require_sane(cell, 90.0)
    _require_sane(cell, 100.0)
    _require_sane({"phones": {"value": 60.0}, "words": None}, 90.0)


def test_a_noisy_recognizer_is_refused(
    outputs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_params(tmp_path / "params.yaml", transcribe={"variant": "dp"})
    options = [f"--outputs={outputs}", f"--params={tmp_path / 'params.yaml'}", f"--out={tmp_path / 'out'}"]
    assert main(["probe", "utility", "--system=anon", *options]) == 2
    assert "transcribe.variant: 'dp' adds noise" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()
