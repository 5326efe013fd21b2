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
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from voxveil.audio.frames import SAMPLE_RATE
from voxveil.config.fields import listed
from voxveil.config.model import PrepareParams
from voxveil.corpus.lists import draw_lists, overlaps
from voxveil.corpus.opening import clips_of, dataset_version, open_source, subsets
from voxveil.corpus.phones import PHONES
from voxveil.corpus.source import Clip, Source
from voxveil.corpus.split import SplitWriter, Utterance
from voxveil.corpus.trials import draw_trials, enough_utterances, write_trials
from voxveil.runtime.atomic import write_json
from voxveil.runtime.errors import InputError
from voxveil.runtime.terminal import Progress
from voxveil.stages.context import StageContext
from voxveil.stages.prepare_pool import Bad, Prepared, prepared

__all__ = ["run"]

_PRIVATE = "private"
_UTILITY = "utility"
#: Lists whose speech must never be read by a training stage.
_SECRET = (_PRIVATE, _UTILITY)


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
    """What became of the clips of one side (public or private)."""

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
    private_clips = clips_of(source, private_names, "prepare.private_subsets")
    public_clips = clips_of(source, public_names, "prepare.public_subsets")
    utility_clips = _utility(source, params, (*public_names, *private_names))
    lists = _lists(context, private_clips, public_clips, utility_clips)
    members = _members(lists, private_clips, public_clips, utility_clips)
    facts = {"public": _Facts(), _PRIVATE: _Facts()}
    kept = _write_splits(context, source, members, facts)
    write_json(
        context.outputs["public"] / "lists.json",
        {
            "lists": {name: list(lists[name]) for name in lists if name not in _SECRET},
            "overlaps": overlaps(lists),
        },
    )
    write_trials(
        context.outputs["private"] / "trials",
        draw_trials(kept, params.enrolment_utterances, seed),
    )
    for side, public in (("public", True), (_PRIVATE, params.public)):
        machine = listed(params.machine_transcripts)
        _write_facts(context.outputs[side], source, facts[side], overlaps(lists), public, machine, version)


def _utility(source: Source, params: PrepareParams, others: Sequence[str]) -> list[Clip]:
    """Return the clips that are only transcribed; their subsets have no other use."""
    names = listed(params.utility_subsets)
    for name in names:
        if name in others:
            raise InputError(
                f"prepare.utility_subsets: {name!r} is also among the public or private subsets;"
                " what is attacked is transcribed anyway"
            )
    clips_of(source, listed(params.machine_transcripts), "prepare.machine_transcripts")
    return clips_of(source, names, "prepare.utility_subsets") if names else []


def _lists(
    context: StageContext,
    private_clips: Sequence[Clip],
    public_clips: Sequence[Clip],
    utility_clips: Sequence[Clip],
) -> dict[str, tuple[str, ...]]:
    """Draw the lists; private speakers first, of those with enough utterances."""
    params, seed = context.params.prepare, context.params.base.seed
    utility = {clip.speaker for clip in utility_clips}
    needed = enough_utterances(params.enrolment_utterances)
    count = Counter(clip.speaker for clip in private_clips)
    eligible = {
        clip.speaker: clip.sex
        for clip in private_clips
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
        {clip.speaker: clip.sex for clip in public_clips if clip.speaker not in taken},
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
    lists: Mapping[str, Sequence[str]],
    private_clips: Sequence[Clip],
    public_clips: Sequence[Clip],
    utility_clips: Sequence[Clip],
) -> dict[str, list[Clip]]:
    """Return the clips of every list that is stored, in order of id."""
    clips = {_PRIVATE: private_clips, _UTILITY: utility_clips}
    members = {}
    for name, speakers in lists.items():
        if name != "synthesis":
            chosen = set(speakers)
            members[name] = [clip for clip in clips.get(name, public_clips) if clip.speaker in chosen]
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
    progress = Progress("prepare", len(order), "utterance")
    with ExitStack() as stack:
        writers = {
            folder: stack.enter_context(SplitWriter(folder))
            for folder in dict.fromkeys(_folder(context, name) for name in members)
        }
        for done, (clip, result) in enumerate(zip(order, prepared(source, order, params.workers)), 1):
            progress.update(done)
            names = lists_of[clip.id]
            secret = names[0] in _SECRET
            side = facts[_PRIVATE if secret else "public"]
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
        _count(facts[_PRIVATE if name in _SECRET else "public"], name, tally, len(members[name]))
    return kept


def _folder(context: StageContext, name: str) -> Path:
    """Return the folder of a list's split; what is only transcribed lies with the private speakers."""
    if name in _SECRET:
        return context.outputs[_PRIVATE] / _PRIVATE
    return context.outputs["public"] / name


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
        raise InputError(f"prepare: no usable utterance is left in split {name} (of {clips})")
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


def _write_facts(
    folder: Path,
    source: Source,
    facts: _Facts,
    shared: list[dict[str, object]],
    public: bool,
    machine: Sequence[str],
    version: Mapping[str, str] | None,
) -> None:
    lines = "".join(f"{sha}  {item}\n" for item, sha in sorted(facts.digests.items()))
    write_json(
        folder / "corpus.json",
        {
            "format": 1,
            "name": source.name,
            "synthetic": source.synthetic,
            "public": public,
            "revision": hashlib.sha256(lines.encode()).hexdigest(),
            "dataset": None if version is None else dict(version),
            "splits": facts.splits,
            "overlaps": shared,
            "phones": list(PHONES) if facts.timed else [],
            "machine_transcripts": list(machine),
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
