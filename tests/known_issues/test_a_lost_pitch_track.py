"""A later stage started although a pitch list was never made.

Seen in https://github.com/Voice-Privacy-Challenge/Voice-Privacy-Challenge-2022/issues/10,
https://github.com/Voice-Privacy-Challenge/Voice-Privacy-Challenge-2022/issues/21,
https://github.com/Voice-Privacy-Challenge/Voice-Privacy-Challenge-2022/issues/26 and
https://github.com/Voice-Privacy-Challenge/Voice-Privacy-Challenge-2022/issues/31:
lists of 104 014 and of 0 entries met. The stage anonymize is tried in tests/stages/test_anonymize.py.
"""

from __future__ import annotations

import io
import tarfile
from pathlib import Path

import pytest

from made_speech import write_params, write_prepared, write_speech
from voxveil.cli.main import main
from voxveil.runtime.done import finish

LOST = "e0-2"


@pytest.fixture
def public(tmp_path: Path) -> Path:
    """A prepared set of 5 utterances, one of which has lost its pitch."""
    write_prepared(tmp_path / "prepare")
    folder = tmp_path / "prepare/public"
    for split in ("extractor", "pool"):
        for path in (folder / split).iterdir():
            path.unlink()
        write_speech(folder / split, {"e0": (8_000,) * 3, "e1": (8_000,) * 2})
        shard = folder / split / "f0-000.tar"
        with tarfile.open(shard) as tar:
            members = [(m, tar.extractfile(m).read()) for m in tar]  # type: ignore[union-attr]
        with tarfile.open(shard, "w") as tar:
            for member, data in members:
                if member.name != f"{LOST}.npy":
                    tar.addfile(member, io.BytesIO(data))
    finish(folder, "prepare", None)
    return folder


@pytest.mark.parametrize(
    ("stage", "key"),
    [("train_pitch", "plain"), ("train_pitch", "dp"), ("train_vocoder", ""), ("train_speaker", "")],
)
def test_the_next_stage_names_it_and_makes_nothing(
    public: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], stage: str, key: str
) -> None:
    sizes = {"channels": 16, "embedding": 16, "steps": 2, "batch": 2, "crop_seconds": 0.5}
    params = write_params(tmp_path / "params.yaml", train_speaker=sizes)
    outputs = {"model": tmp_path / "m", "metrics": tmp_path / "m.json", "curve": tmp_path / "m.csv"}
    words = [f"--out={name}={path}" for name, path in outputs.items()]
    command = [
        "stage",
        stage,
        *(["--key", key] if key else []),
        "--params",
        str(params),
        f"--in=public={public}",
        *words,
    ]
    assert main(command) == 2
    error = [line for line in capsys.readouterr().err.splitlines() if line.startswith("voxveil: error: ")]
    assert len(error) == 1
    assert f"utterance {LOST}: " in error[0]
    assert not any(path.exists() for path in outputs.values())
