"""Readers took the original-versus-original row as the result of their method.

Seen in https://github.com/Voice-Privacy-Challenge/Voice-Privacy-Challenge-2024/issues/37. Every row
names attacker, enrolment and trial; the row without any anonymized speech does not move with the anonymizer.
"""

from __future__ import annotations

import contextlib
import io
import json
from pathlib import Path

import pytest

from made_external import write_external
from voxveil.cli.main import main

pytest.importorskip("torch")
pytestmark = pytest.mark.torch

KINDS = ("phone_histogram",)


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path, str]:
    """Attacks on what two anonymizers made of the same originals, and what the first one printed."""
    out = io.StringIO()
    made = []
    for name, shift in (("one", 1.0), ("other", 1.3)):
        folder = tmp_path_factory.mktemp(name)
        write_external(folder / "speech", shift=shift)
        options = [
            f"--attackers={','.join(KINDS)}",
            "--seeds=1",
            "--replicates=20",
            "--threads=1",
            "--no-figures",
        ]
        with contextlib.redirect_stdout(out if name == "one" else io.StringIO()):
            assert main(["attack", str(folder / "speech"), f"--out={folder / 'out'}", *options]) == 0
        made.append(folder)
    return made[0], made[1], out.getvalue()


def rows(folder: Path) -> dict[str, dict]:
    (found,) = json.loads((folder / "out/result.json").read_text())["sets"]
    return {f"{row['attacker']} {row['scenario']}": row for row in found["attacks"]}


def test_the_row_of_the_original_stays_and_the_others_move(folders: tuple[Path, Path, str]) -> None:
    one, other = rows(folders[0]), rows(folders[1])
    for kind in KINDS:
        assert one[f"{kind} original"] == other[f"{kind} original"]
        place = f"out/scores/speech/{kind}/%s/scores.txt"
        for scenario in ("ignorant", "lazy_informed", "semi_informed"):
            scores = [(folder / (place % scenario)).read_bytes() for folder in folders[:2]]
            assert scores[0] != scores[1], (kind, scenario)
        for name in ("scores.txt", "conditions.json", "trials.txt", "rank.npz"):
            files = [folder / f"out/scores/speech/{kind}/original/{name}" for folder in folders[:2]]
            assert files[0].read_bytes() == files[1].read_bytes(), (kind, name)


def test_every_row_says_attacker_enrolment_and_trial(folders: tuple[Path, Path, str]) -> None:
    found = rows(folders[0])
    states = {name: tuple(row[p] for p in ("training", "enrolment", "trial")) for name, row in found.items()}
    plain, made = "original", "anonymized"
    assert states["phone_histogram original"] == (plain, plain, plain)
    assert states["phone_histogram ignorant"] == (plain, plain, made)
    assert states["phone_histogram lazy_informed"] == (plain, made, made)
    assert states["phone_histogram semi_informed"] == (made, made, made)
    lines = folders[2].splitlines()
    cells = [line.split()[:4] for line in lines if line.startswith(KINDS) and "trained on" not in line]
    assert ["phone_histogram", "original", "OO", "original"] in cells
    assert ["phone_histogram", "semi_informed", "AA", "anonymized"] in cells
    assert any("OO says nothing of the anonymizer" in line for line in lines)
