"""Overlays that are laid over others: knob by knob, systems and variants whole, mistakes in one line."""

from __future__ import annotations

from pathlib import Path

import pytest

from voxveil.config.compose import compose, overlay_names
from voxveil.config.load import read_mapping
from voxveil.runtime.errors import ParamsError

BELOW = """
systems: {original: {kind: original}, anon: {}, anon_pc: {pitch_conversion: true}}
pitch_variants: {plain: {}}
content_variants: {plain: {}, dp: {mechanism: laplace, epsilon: 5}}
train_content:
  steps: 7
  batch: 3
"""


def overlays(folder: Path, **texts: str) -> Path:
    for name, text in {"below": BELOW, **texts}.items():
        (folder / f"{name}.yaml").write_text(text)
    return folder


def test_knobs_are_laid_over_one_by_one_and_systems_and_variants_whole(tmp_path: Path) -> None:
    folder = overlays(
        tmp_path,
        middle="extends: below\nsystems: {original: {kind: original}, anon: {}}\ntrain_content: {steps: 9}\n",
        top="extends: middle\ntrain_content: {batch: 4}\ncontent_variants: {plain: {}}\n",
    )
    middle, top = compose(folder / "middle.yaml"), compose(folder / "top.yaml", {"train_content.batch": "5"})
    assert list(middle.systems) == ["original", "anon"]
    assert (middle.train_content.steps, middle.train_content.batch) == (9, 3)
    assert middle.content_variants["dp"].epsilon == 5
    assert (top.train_content.steps, top.train_content.batch) == (9, 5)
    assert list(top.content_variants) == ["plain"]
    assert (middle.base.scale, top.base.scale) == ("middle", "top")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("extends: nowhere\n", "extends: got 'nowhere', must be one of below, wrong"),
        ("extends: top\n", "extends: got 'top', must be one of below, wrong"),
        ("extends: ../below\n", "extends: got '../below', must be one of below, wrong"),
        ("extends: [below]\n", "extends: got ['below'], must be one of below, wrong"),
        ("extends: wrong\n", "wrong.yaml: extends: top extends this overlay itself"),
    ],
)
def test_an_overlay_that_extends_nothing_or_itself_is_one_line(tmp_path: Path, text: str, said: str) -> None:
    folder = overlays(tmp_path, top=text, wrong="extends: top\n")
    with pytest.raises(ParamsError) as caught:
        compose(folder / "top.yaml")
    assert said in str(caught.value)


def test_what_is_laid_over_another_is_checked_by_its_dotted_path(tmp_path: Path) -> None:
    folder = overlays(tmp_path, top="extends: below\ntrain_content: {stepps: 9}\n")
    with pytest.raises(ParamsError, match=r"train_content\.stepps"):
        compose(folder / "top.yaml")


def test_every_overlay_of_the_project_composes(root: Path) -> None:
    names = overlay_names(root / "params")
    assert {compose(root / f"params/{name}.yaml").base.scale for name in names} == set(names)
    assert any("extends" in read_mapping(root / f"params/{name}.yaml") for name in names)
