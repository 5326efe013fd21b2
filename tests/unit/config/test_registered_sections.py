"""Sections of params.yaml that an installed package registers by entry points."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest
import yaml

from made_section import MadeParams
from voxveil.config import load_params, parse_params
from voxveil.config import sections as registry
from voxveil.config.change import changed_text
from voxveil.config.compose import compose, params_text, to_mapping
from voxveil.config.explain import explanation
from voxveil.config.sections import params_class, section_of, with_section
from voxveil.research.params import AsiParams, AsrParams, ProbeParams
from voxveil.runtime import extensions
from voxveil.runtime.errors import InputError, MissingExtraError, ParamsError
from voxveil.tracking.mlflow_names import flat_params


def register(monkeypatch: pytest.MonkeyPatch, entries: Mapping[str, str]) -> None:
    """Register sections, by name, in place of those of the installed packages."""
    found = {name: EntryPoint(name, value, extensions.PARAMS) for name, value in entries.items()}
    monkeypatch.setattr(extensions, "registered", lambda group: found)
    forget()


def forget() -> None:
    """Read the registered sections anew."""
    params_class.cache_clear()
    registry.absent_sections.cache_clear()


@pytest.fixture
def registering(monkeypatch: pytest.MonkeyPatch) -> Iterator[pytest.MonkeyPatch]:
    with monkeypatch.context() as patch:
        yield patch
    forget()


@pytest.fixture
def path(root: Path, tmp_path: Path) -> Path:
    """A params.yaml of scale tiny with every registered section."""
    file = tmp_path / "params.yaml"
    file.write_text(params_text(compose(root / "params/tiny.yaml")))
    return file


def test_the_installed_package_registers_the_sections_of_research() -> None:
    names = [field.name for field in dataclasses.fields(params_class())]
    assert names[-3:] == ["asi", "asr", "probe"]
    params = params_class()()
    assert section_of(params, AsiParams) == AsiParams()
    assert section_of(params, AsrParams) == AsrParams()
    assert section_of(params, ProbeParams) == ProbeParams()


def test_a_section_of_another_package_is_like_any_other(
    registering: pytest.MonkeyPatch, root: Path, tmp_path: Path
) -> None:
    register(registering, {"made": "made_section:MadeParams"})
    file = tmp_path / "params.yaml"
    file.write_text(params_text(compose(root / "params/tiny.yaml", {"made.low": "3", "made.high": "7"})))
    assert "# A section for tests.\nmade:\n  low: 3" in file.read_text()
    file.write_text(changed_text(file, {"made.low": "4"}))
    params = load_params(file)
    assert section_of(params, MadeParams) == MadeParams(low=4, high=7)
    assert to_mapping(params)["made"] == {"low": 4, "high": 7}
    assert flat_params(to_mapping({"made": section_of(params, MadeParams)}))["made.low"] == "4"
    assert "low = 4" in explanation("made", yaml.safe_load(file.read_text()))
    assert section_of(with_section(params, MadeParams(1, 2)), MadeParams).high == 2
    for change, error in (
        ({"made.low": "-1"}, "made.low: must be at least 0, got -1"),
        ({"made.low": "8"}, "made.low: must be at most made.high (7), got 8"),
        ({"made.width": "8"}, "made.width: unknown parameter; known here: high, low"),
    ):
        with pytest.raises(ParamsError) as raised:
            changed_text(file, change)
        assert str(raised.value) == error


def test_only_what_reads_a_section_asks_for_it(path: Path) -> None:
    """A file of somebody without the extension: the product runs, and no default is taken in silence."""
    content = yaml.safe_load(path.read_text())
    del content["asr"]
    path.write_text(yaml.safe_dump(content))
    params = load_params(path)
    assert "asr" not in to_mapping(params)
    assert "asr:" not in params_text(params)
    assert parse_params(to_mapping(params), complete=True) == params
    assert section_of(params, ProbeParams) == ProbeParams()
    with pytest.raises(ParamsError, match="^asr: missing; 'voxveil params upgrade' adds it"):
        section_of(params, AsrParams)


def test_a_section_of_the_product_is_not_replaced(registering: pytest.MonkeyPatch) -> None:
    register(registering, {"gate": "made_section:MadeParams"})
    with pytest.raises(
        InputError, match="made_section:MadeParams is registered as gate, a section of voxveil"
    ):
        params_class()


def test_a_section_that_nothing_registers_is_named(registering: pytest.MonkeyPatch) -> None:
    register(registering, {})
    with pytest.raises(
        ParamsError, match="no section of class AsrParams is registered; install voxveil again"
    ):
        section_of(params_class()(), AsrParams)


def test_one_name_is_registered_once(monkeypatch: pytest.MonkeyPatch) -> None:
    twice = [EntryPoint("made", f"{name}:MadeParams", extensions.PARAMS) for name in ("one", "other")]
    monkeypatch.setattr("importlib.metadata.entry_points", lambda group: twice)
    with pytest.raises(
        InputError, match="'made' is registered twice, as one:MadeParams and other:MadeParams"
    ):
        extensions.registered.__wrapped__(extensions.PARAMS)


def test_what_is_not_installed_is_named_with_where_it_comes_from() -> None:
    with pytest.raises(MissingExtraError, match=r"voxveil.nothing is not installed.*'voxveil\[nothing\]'"):
        extensions.load(EntryPoint("x", "voxveil.nothing.there:X", extensions.PARAMS))
    with pytest.raises(InputError, match="x: nowhere.params:X needs nowhere, which is not installed"):
        extensions.load(EntryPoint("x", "nowhere.params:X", extensions.PARAMS))
