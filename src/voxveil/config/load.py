"""Parse parameters strictly: an unknown, missing or wrong key fails with its dotted path."""

from __future__ import annotations

import dataclasses
import math
import re
import types
import typing
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeVar, get_args, get_origin, get_type_hints

import yaml

from voxveil.config.features import ContentVariant
from voxveil.config.fields import listed
from voxveil.config.model import Params
from voxveil.config.older import RENAMED, matches
from voxveil.config.sections import MISSING, params_class, registered_names, without_absent
from voxveil.runtime.errors import ParamsError

__all__ = ["load_params", "original_system", "parse_params", "parse_section", "read_mapping"]

_T = TypeVar("_T")
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]*\Z")


class _UniqueKeys(yaml.SafeLoader):
    """YAML's safe loader, which also refuses a key that stands twice (YAML keeps the last one)."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        seen = set()
        for key_node, _ in node.value:
            key = self.construct_object(key_node, deep=True)
            if isinstance(key, str) and key in seen:
                raise ParamsError(f"{key}: stands twice (line {key_node.start_mark.line + 1})")
            if isinstance(key, str):
                seen.add(key)
        result: dict[Any, Any] = super().construct_mapping(node, deep)
        return result


def load_params(path: Path) -> Params:
    """Read and check a params file (YAML, or JSON as Kubeflow passes it)."""
    return parse_params(read_mapping(path), complete=True)


def read_mapping(path: Path) -> dict[str, Any]:
    """Read a YAML file whose top level is a mapping."""
    try:
        loader = _UniqueKeys(Path(path).read_text(encoding="utf-8"))
        try:
            content = loader.get_single_data()
        finally:
            loader.dispose()
    except FileNotFoundError:
        raise ParamsError(f"{path}: no such params file") from None
    except (yaml.YAMLError, UnicodeDecodeError, RecursionError) as error:
        raise ParamsError(f"{path}: not valid YAML ({' '.join(str(error).split())})") from None
    if not isinstance(content, dict):
        raise ParamsError(f"{path}: the top level must be a mapping, got {type(content).__name__}")
    return content


def parse_params(content: Mapping[str, Any], *, complete: bool = False) -> Params:
    """Turn a mapping into checked :class:`Params`.

    Args:
        content: Sections by name.
        complete: Every section of the product, and every key that dvc.yaml needs, must be present (a params
            file). Defaults fill in whatever else is left out.

    Raises:
        ParamsError: With the dotted path, what was got and what is allowed.
    """
    for old, new in RENAMED.items():
        if matches(content, old.split(".")):
            raise ParamsError(
                f"{old}: {f'is now {new}' if new else 'was dropped'}; 'voxveil params upgrade' changes a"
                " params.yaml and keeps its values; change an overlay by hand"
            )
    params = _section(params_class(), without_absent(content), "", complete)
    _check_references(params)
    return params


def parse_section(kind: type[_T], content: Mapping[str, Any], path: str) -> _T:
    """Turn a mapping into one checked section; defaults fill in what it lacks.

    Args:
        kind: The section's class.
        content: Values by name.
        path: Its dotted path, for errors.
    """
    return _section(kind, content, path, False)


def _section(kind: type[_T], content: Any, path: str, complete: bool) -> _T:
    if not isinstance(content, Mapping):
        raise ParamsError(f"{path or 'params'}: must be a mapping, got {_show(content)}")
    hints = get_type_hints(kind)
    fields = {field.name: field for field in dataclasses.fields(kind)}  # type: ignore[arg-type]
    for key in content:
        if key not in fields:
            raise ParamsError(
                f"{_join(path, key)}: unknown parameter; known here: {', '.join(sorted(fields))}"
            )
    values: dict[str, Any] = {}
    for name, field in fields.items():
        where = _join(path, name)
        if name in content:
            values[name] = _value(hints[name], content[name], where, field.metadata, complete)
        elif complete and kind is params_class() and name in registered_names():
            # Its default would hide that the file lacks the values of its scale: see section_of.
            values[name] = None
        elif complete and (kind is params_class() or field.metadata.get("written") == "always"):
            raise ParamsError(f"{where}: {MISSING}")
    return kind(**values)


def _value(kind: Any, value: Any, path: str, rules: Mapping[str, Any], complete: bool) -> Any:
    if value is None:
        raise ParamsError(f"{path}: null is not allowed; leave the parameter out or give a value")
    if isinstance(value, str) and "{{" in value:
        raise ParamsError(f"{path}: got the unexpanded placeholder {value!r}")
    if dataclasses.is_dataclass(kind):
        return _section(typing.cast("type[Any]", kind), value, path, complete)
    if get_origin(kind) is dict:
        return _table(get_args(kind)[1], value, path, complete)
    if isinstance(kind, types.UnionType):
        raise TypeError(f"{path}: unions are not used in the parameter model")
    result = _scalar(kind, value, path)
    _check_range(result, path, rules)
    return result


def _table(kind: Any, value: Any, path: str, complete: bool) -> dict[str, Any]:
    if not isinstance(value, Mapping):
        raise ParamsError(f"{path}: must be a mapping from names to sections, got {_show(value)}")
    for name in value:
        if not isinstance(name, str) or not _NAME.match(name):
            raise ParamsError(f"{_join(path, name)}: a name has letters, digits, '_' and '-' only")
    return {name: _section(kind, item, _join(path, name), complete) for name, item in value.items()}


def _scalar(kind: Any, value: Any, path: str) -> Any:
    if kind is bool:
        if isinstance(value, bool):
            return value
        raise ParamsError(f"{path}: must be true or false, got {_show(value)}")
    if kind is str:
        if isinstance(value, str):
            return value
        raise ParamsError(f"{path}: must be text, got {_show(value)}")
    if isinstance(value, bool):
        raise ParamsError(f"{path}: must be a number, got {_show(value)}")
    try:
        number = float(value)
    except (TypeError, ValueError):
        raise ParamsError(f"{path}: must be a number, got {_show(value)}") from None
    if not math.isfinite(number):
        raise ParamsError(f"{path}: must be a finite number, got {_show(value)}")
    if kind is int:
        # Kubeflow passes whole numbers as 3.0, YAML writers as 2e+06.
        if number != int(number):
            raise ParamsError(f"{path}: must be a whole number, got {_show(value)}")
        return value if isinstance(value, int) else int(number)
    return number


def _check_range(value: Any, path: str, rules: Mapping[str, Any]) -> None:
    low, high, above, one_of = (rules.get(name) for name in ("low", "high", "above", "one_of"))
    if one_of and value not in one_of:
        raise ParamsError(f"{path}: must be one of {', '.join(one_of)}, got {_show(value)}")
    if some_of := rules.get("some_of"):
        words = listed(value)
        if not words or len(set(words)) < len(words) or not set(words) <= set(some_of):
            raise ParamsError(
                f"{path}: must be names by commas, each once, out of {', '.join(some_of)}, got {_show(value)}"
            )
    if low is not None and value < low:
        raise ParamsError(f"{path}: must be at least {low}, got {_show(value)}")
    if high is not None and value > high:
        raise ParamsError(f"{path}: must be at most {high}, got {_show(value)}")
    if above is not None and value <= above:
        raise ParamsError(f"{path}: must be above {above}, got {_show(value)}")


def _check_rho(variant: ContentVariant, where: str) -> None:
    gaussian = variant.mechanism == "gaussian"
    if gaussian and variant.epsilon != 0:
        raise ParamsError(f"{where}.epsilon: Gaussian noise has no pure epsilon but a rho; must be 0")
    if gaussian and variant.rho <= 0:
        raise ParamsError(f"{where}.rho: must be above 0, got {variant.rho:g}")
    if not gaussian and variant.rho != 0:
        raise ParamsError(f"{where}.rho: is of the mechanism gaussian alone; must be 0, got {variant.rho:g}")


def _check_sections(params: Params) -> None:
    for field in dataclasses.fields(params):
        section = getattr(params, field.name)
        if hasattr(section, "check"):
            section.check(field.name)
        if hasattr(section, "gpus") and section.gpus > section.batch:
            raise ParamsError(
                f"{field.name}.gpus: got {section.gpus}, more than {field.name}.batch ({section.batch});"
                " every GPU needs a share of each step"
            )


def _check_references(params: Params) -> None:
    for section, variants in (
        ("pitch_variants", params.pitch_variants),
        ("content_variants", params.content_variants),
    ):
        for name, variant in variants.items():
            where = f"{section}.{name}.epsilon"
            if variant.mechanism == "identity" and variant.epsilon != 0:
                raise ParamsError(
                    f"{where}: the identity mechanism has no epsilon (it is infinite); must be 0"
                )
            if variant.mechanism not in ("identity", "gaussian") and variant.epsilon <= 0:
                raise ParamsError(f"{where}: must be above 0, got {variant.epsilon:g}")
    for name, content in params.content_variants.items():
        _check_rho(content, f"content_variants.{name}")
    if params.train_vocoder.discriminator % 4:
        raise ParamsError(
            f"train_vocoder.discriminator: must be a multiple of 4, got {params.train_vocoder.discriminator}"
        )
    _check_sections(params)
    for name, system in params.systems.items():
        if system.mcadams_low > system.mcadams_high:
            raise ParamsError(
                f"systems.{name}.mcadams_low: must be at most mcadams_high ({system.mcadams_high:g}),"
                f" got {system.mcadams_low:g}"
            )
        if system.kind == "words_voice" and not (system.recognizer and system.voice and system.language):
            empty = next(key for key in ("recognizer", "voice", "language") if not getattr(system, key))
            raise ParamsError(f"systems.{name}.{empty}: is empty; a system of kind words_voice needs it")
        for field, variants in (
            ("pitch", params.pitch_variants),
            ("content", params.content_variants),
        ):
            variant = getattr(system, field)
            if variant not in variants:
                raise ParamsError(
                    f"systems.{name}.{field}: no variant {variant!r} in {field}_variants;"
                    f" known: {', '.join(sorted(variants)) or 'none'}"
                )
    if params.systems and params.transcribe.variant not in params.content_variants:
        raise ParamsError(
            f"transcribe.variant: no variant {params.transcribe.variant!r} in content_variants;"
            f" known: {', '.join(sorted(params.content_variants)) or 'none'}"
        )


def _join(path: str, key: Any) -> str:
    return f"{path}.{key}" if path else str(key)


def _show(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."


def original_system(params: Params) -> str:
    """Return the name of the original system, which every attack is compared with.

    Raises:
        ParamsError: ``score.original`` names none.
    """
    name = params.score.original
    system = params.systems.get(name)
    if system is None or system.kind != "original":
        known = sorted(each for each, found in params.systems.items() if found.kind == "original")
        raise ParamsError(
            f"score.original: {name!r} is no system of kind 'original', which every attack is compared"
            f" with; there is: {', '.join(known) or 'none'}"
        )
    return name
