"""Compilation of a checkout's pipelines to Kubeflow YAML."""

from __future__ import annotations

import importlib
import inspect
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from voxveil.config import Params
from voxveil.kubeflow.pods import Images, pod_configurer
from voxveil.runtime.errors import InputError, ParamsError, import_extra
from voxveil.runtime.project import nearest_above

__all__ = ["compile_pipeline", "project_root"]

_DEFAULT = "train_and_evaluate"

_HEADER = """\
# {name}: {description}
# Written by 'voxveil pipeline compile'; a change here is a change of the pipeline, so review it.
# The second document holds what Kubernetes needs: node selectors, tolerations, secrets, volumes.
"""


def project_root(start: Path) -> Path:
    """Return ``start`` or its nearest parent that holds the pipelines.

    Raises:
        InputError: There is none: the pipelines are part of a checkout, not of the package.
    """
    start = Path(start).resolve()
    found = nearest_above(start, f"pipelines/{_DEFAULT}.py")
    if found is not None:
        return found
    raise InputError(f"{start}: no pipelines/{_DEFAULT}.py here or above; run this in a checkout of voxveil")


def compile_pipeline(
    root: Path, params: Params, images: Images, name: str = _DEFAULT, *, draws: int | None = None
) -> str:
    """Return a pipeline for these parameters as YAML.

    Equal arguments give equal text: systems and variants are unrolled by name, and every value
    stands in the default of the one pipeline parameter ``params``.

    Args:
        root: The checkout.
        params: Complete parameters.
        images: Image of each Dockerfile target.
        name: Name of its file in ``pipelines/``.
        draws: Draws of the noise per variant, for a pipeline that unrolls them; as it has them unless given.

    Raises:
        InputError: There is no such pipeline, or it has no draws.
        ParamsError: The parameters do not serve it.
    """
    known = sorted(path.stem for path in (root / "pipelines").glob("*.py"))
    if name not in known:
        raise InputError(f"--pipeline {name}: not there; pipelines: {', '.join(known)}")
    if not params.systems:
        raise ParamsError("systems: there are none, so there is nothing to run; add one")
    compiler = import_extra("kfp.compiler", "pipeline")
    with _importing_from(root):
        module = importlib.import_module(f"pipelines.{name}")
    configure = pod_configurer(root, images, params)
    if draws is None:
        pipeline = module.build(params, configure)
    elif "draws" in inspect.signature(module.build).parameters:
        pipeline = module.build(params, configure, draws)
    else:
        raise InputError(f"--draws: pipeline {name} has no draws; leave it out")
    with tempfile.TemporaryDirectory(prefix="voxveil-") as temporary:
        path = Path(temporary) / "pipeline.yaml"
        compiler.Compiler().compile(pipeline, str(path))
        text = path.read_text(encoding="utf-8")
    # kfp's own leading comments show defaults in an order that changes from run to run.
    body = text[text.index("components:") :]
    header = _HEADER.format(name=pipeline.name, description=pipeline.pipeline_spec.pipeline_info.description)
    return header + body.rstrip("\n") + "\n"


@contextmanager
def _importing_from(root: Path) -> Iterator[None]:
    sys.path.insert(0, str(root))
    try:
        yield
    finally:
        sys.path.remove(str(root))
