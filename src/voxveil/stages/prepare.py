"""Stage prepare: read or speak the corpus, split it by speaker, track F0, draw trials.

Writes ``public/{extractor,pool,attacker}`` and ``private/private`` (each a
:class:`~voxveil.corpus.split.Split`), ``public/lists.json``, ``private/trials``, and on each
side ``corpus.json`` (facts) and ``exceptions.json`` (what was skipped, who has no voiced frame).
Equal parameters and files give equal bytes, whatever the number of workers.
"""

from __future__ import annotations

import hashlib
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from voxveil.audio.frames import SAMPLE_RATE
from voxveil.corpus.lists import draw_lists, overlaps
from voxveil.corpus.opening import clips_of, open_source, subsets
from voxveil.corpus.phones import PHONES
from voxveil.corpus.source import Clip, Source
from voxveil.corpus.split import SplitWriter, Utterance
from voxveil.corpus.trials import draw_trials, enough_utterances, write_trials
from voxveil.errors import InputError
from voxveil.stages.io import StageContext
from voxveil.stages.prepare_pool import Bad, Prepared, prepared
from voxveil.storage.atomic import write_json
from voxveil.training.progress import Progress

__all__ = ["run"]

_PRIVATE = "private"


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
    public_names, private_names = subsets(params)
    private_clips = clips_of(source, private_names, "prepare.private_subsets")
    public_clips = clips_of(source, public_names, "prepare.public_subsets")
    lists = _lists(context, private_clips, public_clips)
    chosen = _chosen(lists, private_clips, public_clips)
    facts = {"public": _Facts(), _PRIVATE: _Facts()}
    kept = _write_splits(context, source, chosen, facts)
    write_json(
        context.outputs["public"] / "lists.json",
        {
            "lists": {name: list(lists[name]) for name in lists if name != _PRIVATE},
            "overlaps": overlaps(lists),
        },
    )
    write_trials(
        context.outputs["private"] / "trials",
        draw_trials(kept, params.enrolment_utterances, seed),
    )
    for side, public in (("public", True), (_PRIVATE, params.public)):
        _write_facts(context.outputs[side], source, facts[side], overlaps(lists), public)


def _lists(
    context: StageContext, private_clips: Sequence[Clip], public_clips: Sequence[Clip]
) -> dict[str, tuple[str, ...]]:
    """Draw the lists; private speakers first, of those with enough utterances."""
    params, seed = context.params.prepare, context.params.base.seed
    needed = enough_utterances(params.enrolment_utterances)
    count = Counter(clip.speaker for clip in private_clips)
    eligible = {clip.speaker: clip.sex for clip in private_clips if count[clip.speaker] >= needed}
    private = draw_lists(
        eligible,
        {_PRIVATE: params.private_speakers},
        seed,
        where=f"prepare.private_speakers (with {needed} utterances each)",
    )
    taken = set(private[_PRIVATE])
    public = draw_lists(
        {clip.speaker: clip.sex for clip in public_clips if clip.speaker not in taken},
        {
            "extractor": params.extractor_speakers,
            "pool": params.pool_speakers,
            "attacker": params.attacker_speakers,
        },
        seed,
        where="prepare (public speakers)",
    )
    # Synthesis trains on the speech the extractors were trained on; reports say so.
    return {**public, "synthesis": public["extractor"], **private}


def _chosen(
    lists: Mapping[str, Sequence[str]], private_clips: Sequence[Clip], public_clips: Sequence[Clip]
) -> list[tuple[str, Clip]]:
    pairs: list[tuple[str, Clip]] = []
    for name, speakers in lists.items():
        if name == "synthesis":
            continue
        members = set(speakers)
        clips = private_clips if name == _PRIVATE else public_clips
        pairs += [(name, clip) for clip in clips if clip.speaker in members]
    return pairs


def _write_splits(
    context: StageContext,
    source: Source,
    chosen: Sequence[tuple[str, Clip]],
    facts: Mapping[str, _Facts],
) -> list[Utterance]:
    """Write every split in order; return the private utterances that were kept."""
    params = context.params.prepare
    folders = {name: context.outputs[_PRIVATE if name == _PRIVATE else "public"] / name for name, _ in chosen}
    kept: list[Utterance] = []
    progress = Progress("prepare", len(chosen), "utterance")
    results = prepared(source, [clip for _, clip in chosen], params.workers)
    done = 0
    for name, folder in folders.items():
        mine = [clip for split, clip in chosen if split == name]
        side = facts[_PRIVATE if name == _PRIVATE else "public"]
        with SplitWriter(folder) as writer:
            written: list[tuple[Clip, Prepared]] = []
            for clip in mine:
                result = next(results)
                done += 1
                progress.update(done)
                if isinstance(result, Bad):
                    _bad(result, context, side, show=name != _PRIVATE or params.public)
                    continue
                utterance = Utterance(clip.id, clip.speaker, clip.sex, result.samples, clip.text)
                writer.add(utterance, result.flac, f0=result.f0, phones=result.phones)
                written.append((clip, result))
                if name == _PRIVATE:
                    kept.append(utterance)
        _count(side, name, written, len(mine))
    return kept


def _bad(bad: Bad, context: StageContext, facts: _Facts, *, show: bool) -> None:
    if context.params.prepare.on_bad_audio == "fail":
        raise InputError(
            f"{bad.reason} (utterance {bad.utterance}; prepare.on_bad_audio: skip goes on without it)"
        )
    facts.skipped.append({"utterance": bad.utterance, "reason": bad.reason})
    what = f"{bad.utterance}: {bad.reason}" if show else "a private utterance; exceptions.json says which"
    print(f"prepare: skipped {what}", file=sys.stderr)


def _count(facts: _Facts, name: str, written: Sequence[tuple[Clip, Prepared]], clips: int) -> None:
    if not written:
        raise InputError(f"prepare: no usable utterance is left in split {name} (of {clips})")
    voiced = Counter[str]()
    for clip, result in written:
        facts.flags.update(result.flags)
        facts.clipped += result.clipped
        facts.digests[clip.id] = hashlib.sha256(result.flac).hexdigest()
        facts.timed &= result.phones is not None
        voiced[clip.speaker] += int((result.f0 > 0).sum())
    facts.unvoiced += sorted(speaker for speaker, frames in voiced.items() if frames == 0)
    sexes = Counter({clip.speaker: clip.sex for clip, _ in written}.values())
    facts.splits[name] = {
        "speakers": len(voiced),
        "speakers_f": sexes["F"],
        "speakers_m": sexes["M"],
        "utterances": len(written),
        "seconds": round(sum(result.samples for _, result in written) / SAMPLE_RATE, 3),
    }


def _write_facts(
    folder: Path, source: Source, facts: _Facts, shared: list[dict[str, object]], public: bool
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
            "splits": facts.splits,
            "overlaps": shared,
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
