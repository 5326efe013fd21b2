"""Stage anonymize: release the private speakers' speech, and make the attacker's training set.

``released``: every private utterance with noise from the operating system, announced to the
register before any is drawn. ``attacker``: public speech under the same policy with seeded
noise. ``samples``: pairs to listen to, of a corpus that is declared public only.

For a share (:class:`voxveil.stages.context.Share`), all three outputs hold the share's utterances only,
and the ledger announces no others.
What is made of an utterance depends on no other one, so how many shares there are changes nothing but the
noise on private speech, which is never the same twice.
"""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from voxveil.anonymize.anonymizer import Anonymized, Anonymizer
from voxveil.audio.files import encode_flac
from voxveil.corpus.split import Split, SplitWriter, Utterance
from voxveil.features.speaker.targets import Source
from voxveil.privacy.ledger import Entry, Ledger, Release, write_ledger
from voxveil.runtime.atomic import read_json, write_bytes, write_json
from voxveil.runtime.workers import in_order
from voxveil.stages.context import StageContext
from voxveil.synthesis.corpus import corpus_facts

__all__ = ["run"]


def run(context: StageContext) -> None:
    """Anonymize ``private`` and ``public/attacker`` with the bundle of ``context.key``."""
    seed, params = context.params.base.seed, context.params.anonymize
    anonymizer = Anonymizer.load(context.inputs["model"], loudness=params.loudness)
    private = Split(context.inputs["private"] / "private")
    attacker = Split(context.inputs["public"] / "attacker")
    for split in (private, attacker):
        # Reads the index of all F0: one that is missing must stop the run before it is charged.
        split.f0(split.utterances[0].id)
    anonymizer.require_disjoint(private.speakers)
    released, imitated = _own(context, private), _own(context, attacker)
    announced = _announce(context, anonymizer, private, released)
    private_voices, attacker_voices = _Voices(anonymizer, private), _Voices(anonymizer, attacker)

    def release(utterance: Utterance) -> Anonymized:
        # Only the target is seeded; the noise on private speech has no seed to be given.
        chooser = anonymizer.target_stream(seed, utterance.id, utterance.speaker)
        audio, f0 = private.audio(utterance.id), private.f0(utterance.id)
        source = private_voices.source(utterance, audio)
        name = f"utterance {utterance.id}"
        anonymized = anonymizer.anonymize_private(audio, chooser, f0=f0, name=name, source=source)
        announced.require(utterance.id, anonymized.losses, anonymized.vectors)
        return anonymized

    def imitate(utterance: Utterance) -> Anonymized:
        audio, f0 = attacker.audio(utterance.id), attacker.f0(utterance.id)
        source = attacker_voices.source(utterance, audio)
        return anonymizer.anonymize_public(
            audio, seed, utterance.id, f0=f0, speaker=utterance.speaker, source=source
        )

    original = anonymizer.bundle.original
    _write(context, "released", private, released, None if original else release)
    _write(context, "attacker", attacker, imitated, None if original else imitate)
    for port, side in (("released", "private"), ("attacker", "public")):
        write_json(context.outputs[port] / "corpus.json", read_json(context.inputs[side] / "corpus.json"))
    _write_samples(context, private, attacker)


class _Voices:
    """Inputs of the target rule; where a speaker has one target, the same for all of the utterances."""

    def __init__(self, anonymizer: Anonymizer, split: Split) -> None:
        self._anonymizer, self._split = anonymizer, split
        self._first: dict[str, str] = {}
        for utterance in sorted(split, key=lambda u: u.id):
            self._first.setdefault(utterance.speaker, utterance.id)

    def source(self, utterance: Utterance, audio: NDArray[np.float32]) -> Source:
        if self._anonymizer.bundle.target.level == "speaker":
            audio = self._split.audio(self._first[utterance.speaker])
        return self._anonymizer.source_of(audio, utterance.sex, f"utterance {utterance.id}")


def _own(context: StageContext, split: Split) -> tuple[Utterance, ...]:
    """Return the utterances of this share, in the order of the split; all of them where there is one."""
    chosen = context.share.of({utterance.id: utterance.samples for utterance in split}, str(split.folder))
    return tuple(utterance for utterance in split if utterance.id in chosen)


def _announce(
    context: StageContext, anonymizer: Anonymizer, private: Split, utterances: Sequence[Utterance]
) -> Release:
    """Charge the whole release to the register; what it costs is known before it happens."""
    entries = [
        Entry(
            utterance.id,
            hashlib.sha256(private.flac(utterance.id)).hexdigest(),
            anonymizer.vectors(utterance.samples),
            anonymizer.losses(utterance.samples),
            speaker=utterance.speaker,
        )
        for utterance in utterances
    ]
    release = Ledger.open(purpose="evaluation", system=context.key).announce(entries)
    for warning in release.warnings:
        print(f"anonymize: {warning}", file=sys.stderr)
    write_ledger(context.outputs["released"], release)
    return release


def _write(
    context: StageContext,
    port: str,
    split: Split,
    utterances: Sequence[Utterance],
    make: Callable[[Utterance], Anonymized] | None,
) -> None:
    """Write the output split of one port, in the order of its source; a copy of it where ``make`` is None."""

    def one(utterance: Utterance) -> tuple[bytes, int, int]:
        """Return the FLAC of an utterance, its number of clipped samples, and how many samples it has."""
        if make is None:
            return split.flac(utterance.id), 0, utterance.samples
        audio = make(utterance).audio
        return *encode_flac(audio, utterance.id), len(audio)

    folder = context.outputs[port]
    progress = context.progress(port, len(utterances))
    clipped = affected = 0
    with SplitWriter(folder) as writer:
        results = in_order(one, utterances, context.params.base.threads)
        for done, (utterance, (flac, lost, samples)) in enumerate(zip(utterances, results, strict=True), 1):
            # No transcript and no F0: whoever reads this has the speech alone.
            plain = Utterance(utterance.id, utterance.speaker, utterance.sex, samples)
            writer.add(plain, flac)
            clipped += lost
            affected += lost > 0
            progress.update(done)
    facts = {"utterances": len(utterances), "clipped_samples": clipped, "clipped_utterances": affected}
    write_json(folder / "summary.json", {"format": 1, "system": context.key, **facts})
    context.mark_part(port, [utterance.id for utterance in split], {item.id for item in utterances})


def _write_samples(context: StageContext, private: Split, attacker: Split) -> None:
    """Put originals beside anonymized speech, of a corpus that is declared public only."""
    folder = context.outputs["samples"]
    sides = (
        ("released", private, corpus_facts(context.inputs["private"])),
        ("attacker", attacker, corpus_facts(context.inputs["public"])),
    )
    port, split, corpus = next((side for side in sides if side[2]["public"]), sides[1])
    chosen = _choose(split, context.params.anonymize.samples) if corpus["public"] else []
    written = Split(context.outputs[port])
    context.mark_part(
        "samples", [item.id for item in chosen], {item.id for item in chosen if item.id in written}
    )
    rows: list[dict[str, Any]] = []
    for utterance in (item for item in chosen if item.id in written):
        names = {state: f"{utterance.id}.{state}.flac" for state in ("original", "anonymized")}
        write_bytes(Path(folder) / names["original"], split.flac(utterance.id))
        write_bytes(Path(folder) / names["anonymized"], written.flac(utterance.id))
        rows.append({"utterance": utterance.id, "sex": utterance.sex, "text": utterance.text, **names})
    write_json(
        folder / "samples.json",
        {"format": 1, "system": context.key, "corpus": corpus, "source": port, "utterances": rows},
    )


def _choose(split: Split, count: int) -> list[Utterance]:
    """Return the first utterance of each of ``count`` speakers, sexes alternating."""
    first: dict[str, Utterance] = {}
    for utterance in sorted(split, key=lambda u: u.id):
        first.setdefault(utterance.speaker, utterance)
    of_sex = [[u for u in first.values() if u.sex == sex] for sex in sorted({u.sex for u in first.values()})]
    longest = max((len(group) for group in of_sex), default=0)
    mixed = [group[i] for i in range(longest) for group in of_sex if i < len(group)]
    return mixed[:count]
