"""The 2 x 2 table of U_ASR: a recognizer trained on original and on anonymized speech, each heard on both.

What a recognizer that never heard anonymized speech makes of it says how natural it is; what one that
was trained on it makes of it says what words are left. U_ASR = 100 - errors in %, not clipped at 0:
below 0 more is inserted than was said. The recognizer is the hybrid one of the probes: an acoustic
model of its own for each state of speech, the same phone timing (anonymization keeps every frame), a
phone loop, and with ``probe.words`` lexicon and n-gram.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from voxveil.config import Params
from voxveil.config.fields import listed
from voxveil.content.extractor import ContentExtractor
from voxveil.content.labels import Targets, phone_targets, require_phones, state_targets
from voxveil.content.train import LabelledUtterance, mel_features, train_content
from voxveil.corpus.phones import PHONES, SILENCE
from voxveil.corpus.split import Split, Utterance
from voxveil.errors import IncompleteInputError, InputError, ParamsError
from voxveil.privacy import PublicNoise
from voxveil.probe.decoded import Listener
from voxveil.utility.decode import decode_phones
from voxveil.utility.edits import count_edits
from voxveil.utility.per import error_rate
from voxveil.utility.transcripts import NORMALISATION

__all__ = ["STATES", "Speeches", "format_utility", "utility_table"]

STATES = ("original", "anonymized")
#: A recognizer that gets more than this wrong of the speech it was trained on is set up wrongly.
_LARGEST_ORIGINAL = 90.0

Read = Callable[[str], NDArray[np.float32]]


@dataclass(frozen=True)
class Speeches:
    """What is trained on and what is heard, each as it was and anonymized.

    Attributes:
        training: Public speech with phone timing (and transcripts, for words).
        training_anonymized: The same utterances, anonymized.
        tested: Private speech with phone timing and transcripts.
        tested_anonymized: The same utterances, released.
    """

    training: Split
    training_anonymized: Split
    tested: Split
    tested_anonymized: Split

    def check(self) -> None:
        """Refuse anonymized speech of other utterances or lengths: its phones would be elsewhere.

        Raises:
            IncompleteInputError: An utterance is missing or has another number of frames.
        """
        for before, after in (
            (self.training, self.training_anonymized),
            (self.tested, self.tested_anonymized),
        ):
            require_phones(before, "probe utility")
            for utterance in before:
                if utterance.id not in after:
                    raise IncompleteInputError(f"utterance {utterance.id}: not in {after.folder}")
                if after[utterance.id].frames != utterance.frames:
                    raise IncompleteInputError(
                        f"utterance {utterance.id}: {after[utterance.id].frames} frames in {after.folder},"
                        f" {utterance.frames} in {before.folder}; phone timing does not fit"
                    )


def utility_table(speeches: Speeches, params: Params) -> dict[str, Any]:
    """Train the recognizer twice, hear both kinds of speech with each.

    Args:
        speeches: What is trained on and heard.
        params: ``train_content`` gives sizes and steps, ``transcribe.variant`` the variant (without noise),
            ``transcribe.judged_subsets`` what is heard, ``probe.words`` whether words are decoded.

    Returns:
        ``cells`` (``trained`` and ``heard`` state, ``phones`` and ``words`` with errors and U_ASR, each with
        an interval over speakers) and what they were made with.

    Raises:
        InputError: Original speech is not recognised by what was trained on it: a fault of the set-up.
    """
    variant = params.transcribe.variant
    if params.train_content.variants[variant].mechanism != "identity":
        raise ParamsError(f"transcribe.variant: {variant!r} adds noise; U_ASR needs a recognizer without it")
    speeches.check()
    tested = _judged(speeches.tested, listed(params.transcribe.judged_subsets))
    utterances = list(speeches.training)
    phones = phone_targets(speeches.training, utterances, PHONES)
    states = params.train_content.targets == "states"
    targets = state_targets(speeches.training, utterances, phones) if states else phones
    reads: dict[str, tuple[Read, Read]] = {
        "original": (speeches.training.audio, speeches.tested.audio),
        "anonymized": (speeches.training_anonymized.audio, speeches.tested_anonymized.audio),
    }
    cells = []
    for trained in STATES:
        read, _ = reads[trained]
        recognizer = _recognizer(utterances, targets, read, params)
        tuning = utterances[:: max(1, len(utterances) // params.probe.tuning)][: params.probe.tuning]
        listener = Listener(
            utterances,
            phones.labels,
            recognizer.phones,
            {u.id: _posteriors(recognizer, read(u.id), u.id) for u in tuning},
        )
        for heard in STATES:
            posteriors = {u.id: _posteriors(recognizer, reads[heard][1](u.id), u.id) for u in tested}
            cell = _cell(speeches.tested, tested, posteriors, recognizer, listener, params)
            cells.append({"trained": trained, "heard": heard, **cell})
    _require_sane(cells[0])
    return {
        "format": 1,
        "cells": cells,
        "normalisation": NORMALISATION,
        "training": {"speakers": len({u.speaker for u in utterances}), "utterances": len(utterances)},
        "tested": {"speakers": len({u.speaker for u in tested}), "utterances": len(tested)},
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
        widths = [max(len(row[i]) for row in rows) for i in range(3)]
        lines += [
            "  ".join(cell.ljust(w) for cell, w in zip(row, widths, strict=True)).rstrip() for row in rows
        ]
        lines.append("")
    return "\n".join(lines).rstrip()


def _text(entry: Mapping[str, Any]) -> str:
    if entry["u_asr"] is None:
        return "undefined"
    bounds = entry["u_asr_ci95"]
    return f"{entry['u_asr']:.1f}" + (f" [{bounds[0]:.1f}, {bounds[1]:.1f}]" if bounds else "")


def _judged(split: Split, subsets: Sequence[str]) -> list[Utterance]:
    chosen = [u for u in split if not subsets or u.subset in subsets]
    if not chosen:
        raise InputError(f"{split.folder}: no utterance of subsets {', '.join(subsets)}")
    return chosen


def _recognizer(
    utterances: Sequence[Utterance], targets: Targets, read: Read, params: Params
) -> ContentExtractor:
    labelled = [
        LabelledUtterance(u.id, u.speaker, mel_features(read(u.id)), targets.labels[u.id]) for u in utterances
    ]
    trained = train_content(
        labelled,
        PHONES,
        targets.class_phones,
        params.train_content,
        params.transcribe.variant,
        params.base.seed,
        sink=None,
    )
    return trained.extractor


def _posteriors(recognizer: ContentExtractor, audio: NDArray[np.float32], name: str) -> NDArray[np.float32]:
    # The variant has no noise; the source is never drawn from.
    released = recognizer.release(audio, PublicNoise(0, "probe utility", name))
    return recognizer.log_posteriors(released.value)


def _cell(
    split: Split,
    tested: Sequence[Utterance],
    posteriors: Mapping[str, NDArray[np.float32]],
    recognizer: ContentExtractor,
    listener: Listener,
    params: Params,
) -> dict[str, Any]:
    seed, replicates = params.base.seed, params.transcribe.replicates
    speakers = {u.id: u.speaker for u in tested}
    edits = {}
    for utterance in tested:
        said = [phone.label for phone in split.phones(utterance.id) if phone.label != SILENCE]
        heard = decode_phones(posteriors[utterance.id], recognizer.phones)
        edits[utterance.id] = count_edits(said, heard)
    phones = error_rate(edits, speakers, replicates=replicates, seed=seed).to_json()
    words = None
    if params.probe.words:
        words = _u_asr(listener.word_rate(posteriors, tested, replicates=replicates, seed=seed))
    return {"phones": _u_asr(phones), "words": words}


def _u_asr(rate: Mapping[str, Any]) -> dict[str, Any]:
    bounds = rate["ci95"]
    return {
        **rate,
        "u_asr": None if rate["value"] is None else 100.0 - rate["value"],
        "u_asr_ci95": None if bounds is None else [100.0 - bounds[1], 100.0 - bounds[0]],
    }


def _require_sane(cell: Mapping[str, Any]) -> None:
    """Refuse a table whose recognizer does not recognise unprotected speech."""
    for unit in ("phones", "words"):
        found = cell[unit]
        if found is not None and found["value"] is not None and found["value"] > _LARGEST_ORIGINAL:
            raise InputError(
                f"probe utility: {found['value']:.1f} % errors in {unit} of original speech by what was"
                f" trained on it; above {_LARGEST_ORIGINAL:g} % recognizer or references are wrong"
            )
