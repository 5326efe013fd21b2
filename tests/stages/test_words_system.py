"""Stages bundle and anonymize of a system of words: what is packed, announced and released."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("pocketsphinx")
pytest.importorskip("faster_whisper")

from made_speech import SYSTEMS, write_models, write_params, write_prepared
from made_words import WORD, StubRecognizer, use_stubs, write_voice
from voxveil.anonymize.bundle import read_bundle
from voxveil.anonymize.word_recognition import Segment
from voxveil.config.load import parse_params
from voxveil.corpus.split import Split
from voxveil.privacy.ledger import read_ledger
from voxveil.runtime.done import finish
from voxveil.runtime.errors import InputError, ParamsError
from voxveil.stages.run import run_stage

pytestmark = pytest.mark.torch


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    write_models(tmp_path / "models")
    write_prepared(tmp_path / "prepare")
    write_voice(tmp_path / "voice")
    system = {"kind": "words_voice", "voice": str(tmp_path / "voice")}
    systems = {name: {"kind": kind.kind} for name, kind in SYSTEMS.items() if kind.kind == "original"}
    write_params(tmp_path / "params.yaml", systems={**systems, "words": system})
    monkeypatch.setenv("VOXVEIL_LEDGER", str(tmp_path / "ledger"))
    return tmp_path


def bundle(root: Path) -> Path:
    folders = {"pitch": "pitch/plain", "content": "content/plain"}
    folders |= {name: name for name in ("speaker", "vocoder", "synthesis")}
    keys = {"pitch": "plain", "content": "plain", "synthesis": "words"}
    for name, folder in folders.items():
        finish(root / "models" / folder, f"train_{name}", keys.get(name))
    inputs = {name: root / "models" / folder for name, folder in folders.items()}
    run_stage("bundle", root / "params.yaml", inputs, {"model": root / "bundle"}, key="words")
    return root / "bundle"


def test_words_are_packed_announced_and_released(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = bundle(root)
    packed = read_bundle(folder)
    names = {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}
    assert names == {
        *("bundle.json", "SHA256SUMS", "_DONE.json"),
        *("voice/model.json", "voice/model.onnx", "voice/SHA256SUMS"),
    }
    assert packed.words is not None and packed.words.settings["recognizer"].startswith("pocketsphinx")

    use_stubs(monkeypatch, StubRecognizer(lambda audio: [Segment("one " * (len(audio) % 5), 0, 1)]))
    inputs = {"model": folder, "public": root / "prepare/public", "private": root / "prepare/private"}
    outputs = {name: root / name for name in ("attacker", "released", "samples")}
    run_stage("anonymize", root / "params.yaml", inputs, outputs, key="words")
    for port, source in (("released", "private/private"), ("attacker", "public/attacker")):
        spoken, given = Split(root / port), Split(root / "prepare" / source)
        assert [utterance.id for utterance in spoken] == [utterance.id for utterance in given]
        for utterance in given:
            expected = WORD * (utterance.samples % 5) or 16_000
            assert spoken[utterance.id].samples == expected == len(spoken.audio(utterance.id))
    assert not np.array_equal(spoken.audio(utterance.id), given.audio(utterance.id))
    for entry in read_ledger(root / "released/ledger.json").entries:
        assert entry.losses["words"].invariants == {f"recognized_words@{packed.words.digest}"}


def test_a_voice_that_is_not_imported_is_named(root: Path) -> None:
    (root / "voice").rename(root / "elsewhere")
    with pytest.raises(InputError, match=r"systems\.words\.voice: .*no such folder"):
        bundle(root)
    assert not (root / "bundle").exists()


def test_parameters_that_a_system_of_words_needs() -> None:
    with pytest.raises(ParamsError, match=r"systems\.w\.voice: is empty"):
        parse_params(
            {
                "systems": {"w": {"kind": "words_voice"}},
                "pitch_variants": {"plain": {}},
                "content_variants": {"plain": {}},
            }
        )
