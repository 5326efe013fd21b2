"""Bundles: complete, checked file by file, written without torch."""

from __future__ import annotations

import hashlib
import subprocess
import sys
from pathlib import Path

import pytest

from made_speech import SYSTEMS, made_bundles, write_bundles, write_models
from voxveil.anonymize.bundle import read_bundle, write_bundle
from voxveil.runtime.atomic import read_json, write_json, write_text
from voxveil.runtime.checksums import SUMS
from voxveil.runtime.errors import IncompleteInputError, InputError


@pytest.fixture
def bundles(tmp_path: Path) -> Path:
    return made_bundles(tmp_path)


def test_what_was_written_is_read_back(bundles: Path) -> None:
    for name, system in SYSTEMS.items():
        bundle = read_bundle(bundles / name)
        assert (bundle.system, bundle.original) == (name, system.kind == "original")
        assert bundle.pitch_conversion == system.pitch_conversion
        assert bundle.corpus["synthetic"] is True
    losses = read_json(bundles / "anon_dp/bundle.json")["losses"]
    assert (losses["pitch"]["epsilon"], losses["pitch"]["unit"]) == (10.0, "utterance")
    assert losses["pitch"]["sensitivity"] == "4 K"
    assert (losses["content"]["epsilon"], losses["content"]["unit"]) == (10.0, "vector")
    assert losses["content"]["sensitivity"] == 2.0
    assert read_json(bundles / "anon/bundle.json")["losses"]["content"]["epsilon"] == "inf"


def test_the_original_holds_no_model(bundles: Path) -> None:
    names = {p.name for p in (bundles / "original").rglob("*") if p.is_file()}
    assert names == {"bundle.json", SUMS, "_DONE.json"}


def test_equal_models_give_equal_bytes(bundles: Path, tmp_path: Path) -> None:
    write_bundles(tmp_path / "again", tmp_path / "models")
    for name in SYSTEMS:
        assert (bundles / name / SUMS).read_bytes() == (tmp_path / "again" / name / SUMS).read_bytes()


def test_the_standard_tool_reads_the_sums(bundles: Path) -> None:
    subprocess.run(["sha256sum", "--quiet", "-c", SUMS], cwd=bundles / "anon_dp", check=True)


@pytest.mark.parametrize("file", ["pool.npz", "pitch/model.json", "vocoder/model.safetensors", "bundle.json"])
def test_a_changed_or_missing_file_is_named(bundles: Path, file: str) -> None:
    path = bundles / "anon_dp" / file
    data = path.read_bytes()
    path.write_bytes(data + b" ")
    with pytest.raises(IncompleteInputError, match=f"{file}: changed"):
        read_bundle(bundles / "anon_dp")
    path.unlink()
    with pytest.raises(IncompleteInputError, match=f"{file}: missing"):
        read_bundle(bundles / "anon_dp")


def test_an_extra_file_is_named(bundles: Path) -> None:
    (bundles / "anon_dp/pitch/other.safetensors").write_bytes(b"")
    with pytest.raises(IncompleteInputError, match=r"other.safetensors: not part of the model bundle"):
        read_bundle(bundles / "anon_dp")


def test_another_folder_is_not_a_bundle(tmp_path: Path) -> None:
    with pytest.raises(IncompleteInputError, match="not a model bundle"):
        read_bundle(tmp_path)


def edited(folder: Path, **changes: object) -> None:
    """Change bundle.json and make the sums fit it, as somebody with an editor would."""
    write_json(folder / "bundle.json", {**read_json(folder / "bundle.json"), **changes})
    digest = hashlib.sha256((folder / "bundle.json").read_bytes()).hexdigest()
    lines = (folder / SUMS).read_text().splitlines()
    kept = [f"{digest}  bundle.json" if line.endswith("  bundle.json") else line for line in lines]
    write_text(folder / SUMS, "\n".join(kept) + "\n")


def test_another_format_is_refused(bundles: Path) -> None:
    edited(bundles / "anon_dp", format=2)
    with pytest.raises(InputError, match="must be a bundle of format 1, got 2"):
        read_bundle(bundles / "anon_dp")


def test_losses_that_are_not_those_of_the_models_are_refused(bundles: Path) -> None:
    losses = read_json(bundles / "anon_dp/bundle.json")["losses"]
    losses["content"]["epsilon"] = 1.0
    edited(bundles / "anon_dp", losses=losses)
    with pytest.raises(InputError, match="not those of its models"):
        read_bundle(bundles / "anon_dp")


def test_a_path_out_of_the_bundle_is_refused(bundles: Path) -> None:
    sums = bundles / "anon_dp" / SUMS
    sums.write_text(sums.read_text() + f"{'0' * 64}  ../anon/bundle.json\n")
    with pytest.raises(IncompleteInputError, match="not a list of SHA-256"):
        read_bundle(bundles / "anon_dp")


def test_a_model_without_weights_is_named(tmp_path: Path) -> None:
    write_models(tmp_path / "models")
    (tmp_path / "models/vocoder/model.safetensors").unlink()
    models = {part: tmp_path / "models" / part for part in ("speaker", "vocoder", "synthesis")}
    models |= {part: tmp_path / "models" / part / "dp" for part in ("pitch", "content")}
    with pytest.raises(IncompleteInputError, match="vocoder/model.safetensors: missing"):
        write_bundle(tmp_path / "out", "anon_dp", SYSTEMS["anon_dp"], models, {})


def test_bundles_are_written_and_checked_without_torch() -> None:
    code = "import sys, voxveil.anonymize.bundle, voxveil.stages.bundle; sys.exit('torch' in sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)
