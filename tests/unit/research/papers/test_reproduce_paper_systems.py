"""Figures 7 and 8 and appendices B and C of the DP paper from a finished chain."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import yaml

from made_outputs import Made, finish_outputs
from made_pages import numbers
from voxveil.cli.main import main
from voxveil.research.papers.systems import strongest
from voxveil.runtime.atomic import read_json

pytest.importorskip("matplotlib")

SYSTEMS = {
    "original": Made(4.0, per=20.0, kind="original"),
    "anon": Made(1.5, per=28.0),
    "anon_again": Made(1.3, per=29.0),
    "anon_speaker": Made(2.0, per=28.0),
    "anon_dp_pitch": Made(1.0, pitch=10.0, per=30.0),
    "anon_dp": Made(0.3, pitch=10.0, content=10.0, per=62.0),
}


@pytest.fixture(scope="module")
def chain(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = finish_outputs(tmp_path_factory.mktemp("chain"), SYSTEMS)
    path = root / "params.yaml"
    content = yaml.safe_load(path.read_text())
    content["systems"]["anon_speaker"]["target_level"] = "speaker"
    path.write_text(yaml.safe_dump(content, sort_keys=False))
    return root


def made(chain: Path, name: str, out: Path) -> dict[str, dict]:
    assert main(["reproduce", name, "--project", str(chain), "--out", str(out)]) == 0
    return numbers(out)


def judged(chain: Path, system: str) -> dict[str, dict]:
    return read_json(chain / "outputs/evaluate" / system / "ecapa-semi_informed.json")["metrics"]


def cells(out: Path, place: int) -> dict[str, str]:
    (table,) = read_json(out / "results.json")["tables"]
    return {row[0]: row[place] for row in table["rows"]}


def test_privacy_is_that_of_the_evaluation_by_family_and_epsilon(chain: Path, tmp_path: Path) -> None:
    found = made(chain, "dp-fig7", tmp_path / "out")
    for system in SYSTEMS:
        for metric in ("eer", "unlinkability", "identification_rate"):
            number, entry = found[f"{system}/{metric}"], judged(chain, system)[metric]
            assert (number["value"], number["interval95"]) == (entry["value"], entry["ci95"])
    assert cells(tmp_path / "out", 1) == {
        "original": "original",
        "anon": "Anon",
        "anon_again": "Anon",
        "anon_speaker": "Anon",
        "anon_dp_pitch": "Anon+DP_Pitch",
        "anon_dp": "Anon+DP",
    }
    assert cells(tmp_path / "out", 2)["anon_dp_pitch"] == "10" and cells(tmp_path / "out", 2)["anon"] == "∞"
    assert [name for name in found if name.endswith("epsilon_utterance")] == ["anon_dp/epsilon_utterance"]


def test_the_strongest_attack_counts_even_where_it_never_errs() -> None:
    def attack(system: str, attacker: str, eer: float | None) -> SimpleNamespace:
        return SimpleNamespace(system=system, attacker=attacker, metrics={"eer": {"value": eer}})

    attacks = [attack("a", "x", None), attack("a", "y", 0.0), attack("a", "z", 30.0), attack("b", "x", 5.0)]
    found = strongest(SimpleNamespace(of=lambda scenario: attacks))
    assert {name: each.attacker for name, each in found.items()} == {"a": "y", "b": "x"}


def test_utility_is_what_is_not_wrong(chain: Path, tmp_path: Path) -> None:
    found = made(chain, "dp-fig8", tmp_path / "out")
    errors = read_json(chain / "outputs/evaluate/anon/summary.json")["utility"]["per"]
    assert found["anon/u_asr"]["value"] == pytest.approx(100 - errors["value"])
    low, high = errors["ci95"]
    assert found["anon/u_asr"]["interval95"] == pytest.approx([100 - high, 100 - low])
    assert found["anon/published"]["value"] == 94.69
    content = read_json(tmp_path / "out/results.json")
    assert any("No words were recognized" in warning for warning in content["warnings"])
    assert cells(tmp_path / "out", 4)["anon"] == "not measured"


def test_a_voice_for_a_speaker_stands_beside_one_for_an_utterance(chain: Path, tmp_path: Path) -> None:
    made(chain, "dp-appendix-b", tmp_path / "out")
    assert cells(tmp_path / "out", 2) == {
        "anon": "utterance",
        "anon_again": "utterance",
        "anon_speaker": "speaker",
    }


def test_systems_of_equal_settings_show_the_spread(chain: Path, tmp_path: Path) -> None:
    found = made(chain, "dp-appendix-c", tmp_path / "out")
    values = [judged(chain, system)["eer"]["value"] for system in ("anon", "anon_again")]
    assert found["anon/eer/least"]["value"] == min(values)
    assert found["anon/eer/most"]["value"] == max(values)
    assert found["anon/eer/mean"]["value"] == pytest.approx(np.mean(values))


@pytest.mark.parametrize(
    ("name", "word"), [("dp-appendix-b", "target_level"), ("dp-appendix-c", "equal settings")]
)
def test_a_chain_without_them_is_told_what_makes_them(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str, word: str
) -> None:
    root = finish_outputs(tmp_path / "chain", {name: SYSTEMS[name] for name in ("original", "anon_dp")})
    capsys.readouterr()
    assert main(["reproduce", name, "--project", str(root), "--out", str(tmp_path / "out")]) == 2
    (line,) = capsys.readouterr().err.strip().splitlines()
    assert word in line and "papers-mini" in line
    assert not (tmp_path / "out").exists()
