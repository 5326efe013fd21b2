"""The 2 x 2 table of U_ASR: recognizers trained and tested on original and on anonymized speech.

What a recognizer that never heard anonymized speech makes of it says how natural it is; what one that
was trained on it makes of it says what words are left. U_ASR = 100 - errors in %, not clipped at 0:
below 0 more is inserted than was said. ``probe.recognizer`` chooses the recognizer: the hybrid one of the
probes (:mod:`voxveil.research.probe.hybrid`), or a conformer of full size
(:mod:`voxveil.research.probe.conformer`).
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from voxveil.config import Params
from voxveil.config.sections import section_of
from voxveil.research.params import ProbeParams
from voxveil.research.probe.speeches import STATES, Judge, Speeches
from voxveil.runtime.errors import InputError
from voxveil.runtime.terminal import align_columns
from voxveil.utility.transcripts import NORMALIZATION

__all__ = ["format_utility", "utility_table"]


def utility_table(speeches: Speeches, params: Params, folder: Path) -> dict[str, Any]:
    """Train the recognizer twice, hear both kinds of speech with each.

    Args:
        speeches: What is trained on and heard.
        params: ``probe`` chooses the recognizer and its bar.
        folder: Where trained recognizers are kept, by the recognizers that keep them.

    Returns:
        ``cells`` (``trained`` and ``heard`` state, ``phones`` and ``words`` with errors and U_ASR, each with
        an interval over speakers) and what they were made with.

    Raises:
        InputError: Original speech is not recognized by what was trained on it: a fault of the set-up.
            Nothing was trained on anonymized speech.
    """
    judge = _judge(speeches, params, folder)
    utterances = list(speeches.training)
    cells: list[dict[str, Any]] = []
    for trained in STATES:
        hear = judge.trained_on(trained)
        for tested in STATES:
            cells.append({"trained": trained, "heard": tested, **hear(tested)})
            if trained == tested == STATES[0]:
                _require_sane(cells[0], section_of(params, ProbeParams).largest_errors)
    return {
        "format": 1,
        "cells": cells,
        "recognizer": judge.name,
        "largest_errors": section_of(params, ProbeParams).largest_errors,
        "normalisation": NORMALIZATION,
        "training": {
            "speakers": len({u.speaker for u in utterances}),
            "utterances": len(utterances),
            **judge.training(),
        },
        "tested": {"speakers": len({u.speaker for u in judge.tested}), "utterances": len(judge.tested)},
        "scale": params.base.scale,
    }


def format_utility(table: Mapping[str, Any]) -> str:
    """Return the 2 x 2 tables of phones, and of words where they were decoded, as text."""
    cells = table["cells"]
    lines = []
    for unit in ("phones", "words"):
        if cells[0].get(unit) is None:
            continue
        lines += [f"U_ASR by {unit}, 100 - errors in % (95 % interval over speakers)", ""]
        rows = [("trained on", *(f"heard: {state}" for state in STATES))]
        for trained in STATES:
            row = [cell[unit] for cell in cells if cell["trained"] == trained]
            rows.append((trained, *(_text(each) for each in row)))
        lines += [*align_columns(rows), ""]
    lines += [f"Recognizer: {table['recognizer']}", f"Normalisation: {table['normalisation']}"]
    return "\n".join(lines)


def _judge(speeches: Speeches, params: Params, folder: Path) -> Judge:
    if section_of(params, ProbeParams).recognizer == "conformer":
        from voxveil.research.probe.conformer import ConformerJudge

        return ConformerJudge(speeches, params, folder)
    from voxveil.research.probe.hybrid import HybridJudge

    return HybridJudge(speeches, params)


def _text(entry: Mapping[str, Any]) -> str:
    if entry["u_asr"] is None:
        return "undefined"
    bounds = entry["u_asr_ci95"]
    return f"{entry['u_asr']:.1f}" + (f" [{bounds[0]:.1f}, {bounds[1]:.1f}]" if bounds else "")


def _require_sane(cell: Mapping[str, Any], largest: float) -> None:
    """Raise an error if errors on unprotected speech exceed ``largest`` %; 100 disables the check."""
    for unit in ("phones", "words"):
        found = cell[unit]
        if largest < 100.0 and found is not None and found["value"] is not None and found["value"] > largest:
            raise InputError(
                f"probe utility: {found['value']:.1f} % errors in {unit} of original speech by what was"
                f" trained on it; above {largest:g} % (probe.largest_errors) recognizer or references are"
                " wrong"
            )
