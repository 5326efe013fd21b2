"""Stage prepare: read or speak the corpus, split it by speaker, track F0, draw trials.

Writes ``public/{extractor,pool,attacker}`` and ``private/private`` (each a
:class:`~voxveil.corpus.split.Split`; the latter with the utterances of ``prepare.utility_subsets``,
which are released and transcribed but stand in no trial), ``public/lists.json``, ``private/trials``, and
on each side ``corpus.json`` (facts) and ``exceptions.json`` (what was skipped, who
has no voiced frame).
Equal parameters and files give equal bytes, whatever the number of workers.
"""

from __future__ import annotations

import hashlib
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from voxveil.audio.files import decode, encode_flac, pad_short
from voxveil.audio.frames import SAMPLE_RATE
from voxveil.config.fields import listed
from voxveil.config.model import PrepareParams
from voxveil.corpus.lists import draw_lists, overlaps
from voxveil.corpus.opening import clips_of, dataset_version, open_source, subsets
from voxveil.corpus.phones import PHONES
from voxveil.corpus.source import Clip, Source
from voxveil.corpus.split import Phone, SplitWriter, Utterance
from voxveil.corpus.trials import draw_trials, enough_utterances, write_trials
from voxveil.features.pitch.yaapt import track_f0
from voxveil.runtime.atomic import write_json
from voxveil.runtime.errors import InputError
from voxveil.runtime.workers import in_processes
from voxveil.stages.context import StageContext

__all__ = ["Bad", "Prepared", "prepare_clip", "prepared", "run"]

_PUBLIC = "public"
_PRIVATE = "private"
_UTILITY = "utility"
#: Lists whose speech must never be read by a training stage.
_SECRET = (_PRIVATE, _UTILITY)


@dataclass(frozen=True)
class Prepared:
    """One clip as it is stored.

    Attributes:
        flac: 16 kHz mono FLAC.
        samples: Its sample count.
        f0: (K,) F0 in Hz of the stored audio, 0 where unvoiced.
        phones: Phone timing, None where it is not known.
        states: (K,) triphone states, None where they are not known.
        flags: What was done to the audio or seen in it.
        clipped: Samples that were clipped when stored.
    """

    flac: bytes
    samples: int
    f0: NDArray[np.float32]
    phones: Sequence[Phone] | None
    states: NDArray[np.int16] | None
    flags: tuple[str, ...]
    clipped: int


@dataclass(frozen=True)
class Bad:
    """A clip that cannot be used, and why."""

    utterance: str
    reason: str


@dataclass
class _Tally:
    """Counts of one list; its F0 and audio would not fit in memory for a large corpus."""

    utterances: int = 0
    samples: int = 0
    voiced: Counter[str] = field(default_factory=Counter)
    sexes: dict[str, str] = field(default_factory=dict)

    def add(self, clip: Clip, result: Prepared) -> None:
        """Count one utterance."""
        self.utterances += 1
        self.samples += result.samples
        self.voiced[clip.speaker] += int((result.f0 > 0).sum())
        self.sexes[clip.speaker] = clip.sex


@dataclass
class _Facts:
    """Facts of one side (public or private): splits, skipped clips, flags, digests."""

    splits: dict[str, Any] = field(default_factory=dict)
    skipped: list[dict[str, str]] = field(default_factory=list)
    flags: Counter[str] = field(default_factory=Counter)
    unvoiced: list[str] = field(default_factory=list)
    digests: dict[str, str] = field(default_factory=dict)
    clipped: int = 0
    timed: bool = True


def run(context: StageContext) -> None:
    """Prepare the corpus that ``prepare.source`` names."""
    params, seed = context.params.prepare, context.params.base.seed
    source = open_source(params, seed)
    version = dataset_version(params)
    public_names, private_names = subsets(params)
    clips = {
        _PRIVATE: clips_of(source, private_names, "prepare.private_subsets"),
        _PUBLIC: clips_of(source, public_names, "prepare.public_subsets"),
        _UTILITY: _utility(source, params, (*public_names, *private_names)),
    }
    lists = _lists(context, clips)
    members = _members(lists, clips)
    facts = {_PUBLIC: _Facts(), _PRIVATE: _Facts()}
    kept = _write_splits(context, source, members, facts)
    write_json(
        context.outputs[_PUBLIC] / "lists.json",
        {
            "lists": {name: list(lists[name]) for name in lists if name not in _SECRET},
            "overlaps": overlaps(lists),
        },
    )
    trials = draw_trials(kept, params.enrolment_utterances, seed)
    write_trials(context.outputs[_PRIVATE] / "trials", trials)
    shared = {
        "name": source.name,
        "synthetic": source.synthetic,
        "dataset": version,
        "overlaps": overlaps(lists),
        "machine_transcripts": listed(params.machine_transcripts),
    }
    for side, public in ((_PUBLIC, True), (_PRIVATE, params.public)):
        _write_facts(context.outputs[side], facts[side], {**shared, "public": public})


def _utility(source: Source, params: PrepareParams, others: Sequence[str]) -> list[Clip]:
    """Return the clips that are only transcribed; their subsets have no other use."""
    names = listed(params.utility_subsets)
    for name in names:
        if name in others:
            raise InputError(
                f"prepare.utility_subsets: {name!r} is also among the public or private subsets; allowed:"
                " subsets of no other use (private speech is transcribed anyway)"
            )
    clips_of(source, listed(params.machine_transcripts), "prepare.machine_transcripts")
    return clips_of(source, names, "prepare.utility_subsets") if names else []


def _lists(context: StageContext, clips: Mapping[str, Sequence[Clip]]) -> dict[str, tuple[str, ...]]:
    """Draw the lists; private speakers first, of those with enough utterances."""
    params, seed = context.params.prepare, context.params.base.seed
    utility = {clip.speaker for clip in clips[_UTILITY]}
    needed = enough_utterances(params.enrolment_utterances)
    count = Counter(clip.speaker for clip in clips[_PRIVATE])
    eligible = {
        clip.speaker: clip.sex
        for clip in clips[_PRIVATE]
        if count[clip.speaker] >= needed and clip.speaker not in utility
    }
    private = draw_lists(
        eligible,
        {_PRIVATE: params.private_speakers},
        seed,
        where=f"prepare.private_speakers (with {needed} utterances each)",
    )
    taken = set(private[_PRIVATE]) | utility
    public = draw_lists(
        {clip.speaker: clip.sex for clip in clips[_PUBLIC] if clip.speaker not in taken},
        {
            "extractor": params.extractor_speakers,
            "pool": params.pool_speakers,
            "attacker": params.attacker_speakers,
        },
        seed,
        where="prepare (public speakers)",
        shared=params.share_speakers,
    )
    # Synthesis trains on the speech the extractors were trained on; reports say so.
    lists = {**public, "synthesis": public["extractor"], **private}
    return {**lists, _UTILITY: tuple(sorted(utility))} if utility else lists


def _members(
    lists: Mapping[str, Sequence[str]], clips: Mapping[str, Sequence[Clip]]
) -> dict[str, list[Clip]]:
    """Return the clips of every list that is stored, in order of id."""
    members = {}
    for name, speakers in lists.items():
        if name != "synthesis":
            chosen = set(speakers)
            members[name] = [clip for clip in clips.get(name, clips[_PUBLIC]) if clip.speaker in chosen]
    return members


def _write_splits(
    context: StageContext,
    source: Source,
    members: Mapping[str, Sequence[Clip]],
    facts: Mapping[str, _Facts],
) -> list[Utterance]:
    """Read every clip once and write it to each split it belongs to.

    Returns:
        The utterances of the private list that were kept.
    """
    params = context.params.prepare
    lists_of: dict[str, list[str]] = {}
    clips: dict[str, Clip] = {}
    for name, chosen in members.items():
        for clip in chosen:
            lists_of.setdefault(clip.id, []).append(name)
            clips[clip.id] = clip
    order = sorted(clips.values(), key=lambda clip: clip.id)
    tallies = {name: _Tally() for name in members}
    kept: list[Utterance] = []
    progress = context.progress("", len(order))
    with ExitStack() as stack:
        writers = {
            folder: stack.enter_context(SplitWriter(folder))
            for folder in dict.fromkeys(_folder(context, name) for name in members)
        }
        for done, (clip, result) in enumerate(zip(order, prepared(source, order, params.workers)), 1):
            progress.update(done)
            names = lists_of[clip.id]
            secret = names[0] in _SECRET
            side = facts[_PRIVATE if secret else _PUBLIC]
            if isinstance(result, Bad):
                _bad(result, context, side, show=not secret or params.public)
                continue
            utterance = Utterance(clip.id, clip.speaker, clip.sex, result.samples, clip.text, clip.subset)
            for name in names:
                writers[_folder(context, name)].add(
                    utterance, result.flac, f0=result.f0, phones=result.phones, states=result.states
                )
                tallies[name].add(clip, result)
            _note(side, clip, result)
            if _PRIVATE in names:
                kept.append(utterance)
    for name, tally in tallies.items():
        _count(facts[_PRIVATE if name in _SECRET else _PUBLIC], name, tally, len(members[name]))
    return kept


def _folder(context: StageContext, name: str) -> Path:
    """Return the folder of a list's split; what is only transcribed lies with the private speakers."""
    if name in _SECRET:
        return context.outputs[_PRIVATE] / _PRIVATE
    return context.outputs[_PUBLIC] / name


def _bad(bad: Bad, context: StageContext, facts: _Facts, *, show: bool) -> None:
    if context.params.prepare.on_bad_audio == "fail":
        raise InputError(
            f"{bad.reason} (utterance {bad.utterance}; prepare.on_bad_audio: skip goes on without it)"
        )
    facts.skipped.append({"utterance": bad.utterance, "reason": bad.reason})
    what = f"{bad.utterance}: {bad.reason}" if show else "a private utterance; exceptions.json says which"
    print(f"prepare: skipped {what}", file=sys.stderr)


def _note(facts: _Facts, clip: Clip, result: Prepared) -> None:
    facts.flags.update(result.flags)
    facts.clipped += result.clipped
    facts.digests[clip.id] = hashlib.sha256(result.flac).hexdigest()
    facts.timed &= result.phones is not None


def _count(facts: _Facts, name: str, tally: _Tally, clips: int) -> None:
    if not tally.utterances:
        raise InputError(
            f"prepare: no usable utterance is left in split {name} (of {clips}), at least one must be"
        )
    unvoiced = {speaker for speaker, frames in tally.voiced.items() if frames == 0}
    facts.unvoiced = sorted({*facts.unvoiced, *unvoiced})
    sexes = Counter(tally.sexes.values())
    facts.splits[name] = {
        "speakers": len(tally.voiced),
        "speakers_f": sexes["F"],
        "speakers_m": sexes["M"],
        "utterances": tally.utterances,
        "seconds": round(tally.samples / SAMPLE_RATE, 3),
    }


def _write_facts(folder: Path, facts: _Facts, shared: Mapping[str, Any]) -> None:
    """Write ``corpus.json``, with facts that both sides share, and ``exceptions.json``."""
    lines = "".join(f"{sha}  {item}\n" for item, sha in sorted(facts.digests.items()))
    write_json(
        folder / "corpus.json",
        {
            **shared,
            "format": 1,
            "revision": hashlib.sha256(lines.encode()).hexdigest(),
            "splits": facts.splits,
            "phones": list(PHONES) if facts.timed else [],
            "skipped": len(facts.skipped),
            "flags": dict(facts.flags),
            "clipped_samples": facts.clipped,
            "speakers_without_voiced_frames": len(facts.unvoiced),
        },
    )
    # Ids and file names stay in this output; corpus.json travels on with what is released.
    write_json(
        folder / "exceptions.json",
        {"skipped": facts.skipped, "speakers_without_voiced_frames": facts.unvoiced},
    )


def prepare_clip(source: Source, clip: Clip) -> Prepared | Bad:
    """Read, pad, encode and track one clip."""
    try:
        reading = source.read(clip)
    except InputError as error:
        return Bad(clip.id, str(error))
    audio = pad_short(reading.audio)
    flac, clipped = encode_flac(audio, clip.id)
    # F0 of what is stored, so that it is the F0 of what later stages hear.
    f0 = track_f0(decode(flac, clip.id))
    flags = set(reading.flags)
    if len(audio) > len(reading.audio):
        flags.add("padded")
    if not f0.any():
        flags.add("unvoiced")
    return Prepared(flac, len(audio), f0, reading.phones, reading.states, tuple(sorted(flags)), clipped)


def prepared(source: Source, clips: Sequence[Clip], workers: int) -> Iterator[Prepared | Bad]:
    """Yield the result of each clip in order.

    Args:
        source: The corpus.
        clips: What to prepare.
        workers: Processes; 1 = this one.
    """
    yield from in_processes(partial(prepare_clip, source), clips, workers)
