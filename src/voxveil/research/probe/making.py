"""Measurement and storage of one probe, for ``voxveil probe pitch|content`` and cluster steps."""

from __future__ import annotations

from pathlib import Path

from voxveil.config import Params
from voxveil.research.probe.pipeline import PROBED
from voxveil.runtime.atomic import whole_directory, write_json
from voxveil.runtime.done import Done, finish, require_done
from voxveil.runtime.errors import InputError, ParamsError
from voxveil.stages.registry import stage_spec

__all__ = ["make_probe"]


def make_probe(
    kind: str, public: Path, model: Path, out: Path, params: Params, variant: str, draw: int
) -> Done:
    """Measure one draw of one variant, and write ``probe.json`` into a finished folder.

    Args:
        kind: ``pitch`` or ``content``.
        public: Public output of prepare. That it is whole the caller has checked, who may know its digest.
        model: What the training of the variant wrote.
        out: Folder of the probe; replaced whole.
        params: All parameters.
        variant: Name of the variant.
        draw: Number of the draw of its noise, from 1 on.

    Raises:
        ParamsError: There is no such variant.
        InputError: The model is of another variant, or there is no such draw.
    """
    trainer = PROBED[kind]
    table = stage_spec(trainer).table
    variants = getattr(params, table)
    if variant not in variants:
        raise ParamsError(f"{table}: no variant {variant!r}; known: {', '.join(variants) or 'none'}")
    if draw < 1:
        raise InputError(f"the draw of a probe must be at least 1, got {draw}")
    done = require_done(model, "model")
    if (done.stage, done.key) != (trainer, variant):
        raise InputError(
            f"{model} is output of {done.stage}[{done.key}]; needed is that of {trainer}[{variant}]"
        )
    from voxveil.training.loop import use_threads

    use_threads(params.base.threads)
    if kind == "pitch":
        from voxveil.research.probe.pitch import probe_pitch

        result = probe_pitch(public, model, params, variant, draw)
    else:
        from voxveil.research.probe.content import probe_content

        result = probe_content(public, model, params, variant, draw)
    with whole_directory(out) as folder:
        write_json(folder / "probe.json", result)
        return finish(folder, f"probe_{kind}", variant)
