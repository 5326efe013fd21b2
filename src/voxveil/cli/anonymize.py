"""``voxveil anonymize``: a folder of recordings to anonymized speech, with its ledger."""

from __future__ import annotations

import argparse
import contextlib
import math
import os
import sys
import threading
import time
from collections import Counter
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np

from voxveil.anonymize.anonymizer import LOUDNESS, Anonymizer
from voxveil.anonymize.bundle import Bundle, read_bundle
from voxveil.anonymize.output_names import RandomNames
from voxveil.anonymize.recordings import DATA_FOLDER, Job, Work, find_work
from voxveil.anonymize.releasing import JobTargets, release_windows, require_known
from voxveil.audio.files import encode_audio, read_recording
from voxveil.audio.frames import HOP, SAMPLE_RATE, frame_count
from voxveil.cli.actions import require_least
from voxveil.corpus.kaldi import write_tables
from voxveil.privacy.ledger import Entry, Ledger, Release, write_ledger
from voxveil.privacy.loss import Loss
from voxveil.privacy.register import Register, open_register
from voxveil.privacy.zcdp import DELTA, approximate
from voxveil.runtime.atomic import write_bytes
from voxveil.runtime.errors import InputError, PrivacyError
from voxveil.runtime.terminal import Progress
from voxveil.runtime.workers import in_order
from voxveil.tracking.models.contents import locate_model

__all__ = ["EPILOG", "HELP", "add_arguments", "run"]

HELP = "Anonymize recordings with a trained model: 16 kHz mono FLAC or WAV, the folder structure kept."

EPILOG = """Losses are announced to the register (VOXVEIL_LEDGER, see 'voxveil ledger') before any noise is
drawn; without it nothing is released. The record is ledger.json in OUT; it names your files and
belongs to you, not to the published audio. A run that was stopped goes on where it was: finished
outputs are kept, unfinished or damaged ones are drawn again and charged again. Outputs of another
model or loudness are neither kept nor overwritten.
A recording longer than --window is released in windows, in memory that does not grow with it: each
content vector once, pitch once per window, so epsilon of the pitch is charged for each of them.
A Kaldi data folder (wav.scp, utt2spk), as VoicePrivacy has them, becomes another: OUT/wav/UTTERANCE.flac,
wav.scp and the other tables; they name speakers and words, and are outside the promise.
Public by definition: sample counts, relative paths, and which recordings were refused; with
--pad-to SECONDS the sample counts tell only how many times SECONDS a recording fills. With --names
random OUT holds nothing but speech under random names; OUT.private, beside it, says which is which
(names.json) and holds the ledger.

examples:
  voxveil anonymize recordings/ private/ --model models/anon_dp
  voxveil anonymize recordings/ private/ --model models --system anon_dp --on-bad-audio skip
  voxveil anonymize recordings/ private/ --model models:/anonymizer@champion
  voxveil anonymize recordings/ private/ --model models/anon_dp --pad-to 5
  voxveil anonymize recordings/ public/ --model models/anon_dp --names random --pad-to 5
  voxveil anonymize interview.wav interview-anonymized.flac --model models/anon_dp
  voxveil anonymize data/libri_test_trials_f data/libri_test_trials_f_dp --format wav --model models/anon_dp
"""

#: What a user should know of a recording before its loss is announced.
_WARNINGS = {
    "band_limited": "band-limited, its rate is under 16 kHz",
    "silent": "silence, all its samples are equal in 16 bit",
}

#: Seconds that are released at once unless told.
WINDOW = 60.0

#: Files listed one by one at the end.
_LISTED = 20


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``voxveil anonymize``."""
    parser.add_argument("source", metavar="IN", type=Path, help="recording, or folder of recordings")
    parser.add_argument(
        "destination", metavar="OUT", type=Path, help="folder (or NAME.flac, NAME.wav for one recording)"
    )
    parser.add_argument(
        "--model",
        required=True,
        help="model bundle or folder of bundles, s3://BUCKET/PREFIX, or models:/NAME@ALIAS",
    )
    parser.add_argument("--system", help="which bundle of the folder, e.g. anon_dp")
    parser.add_argument(
        "--on-bad-audio",
        choices=("fail", "skip"),
        default="fail",
        help="fail: release nothing if a recording cannot be used; skip: go on without it (%(default)s)",
    )
    parser.add_argument(
        "--loudness", type=float, default=LOUDNESS, help="loudness of every output in LUFS (%(default)s)"
    )
    parser.add_argument(
        "--pad-to",
        type=float,
        default=0.0,
        metavar="SECONDS",
        help="release silence up to a multiple of so many seconds, so that lengths tell less (0 = none)",
    )
    parser.add_argument(
        "--names",
        choices=("keep", "random"),
        default="keep",
        help="keep: as the recordings' (%(default)s); random: no folders, no names, the map in OUT.private",
    )
    parser.add_argument(
        "--window",
        type=float,
        default=WINDOW,
        metavar="SECONDS",
        help="longest piece that is released at once; pitch is charged per window (0 = whole, %(default)s)",
    )
    parser.add_argument(
        "--format", choices=("flac", "wav"), default="flac", help="of the outputs (%(default)s)"
    )
    parser.add_argument(
        "--layout",
        choices=("auto", "plain"),
        default="auto",
        help="plain: a folder is searched for recordings even if it holds wav.scp (%(default)s)",
    )
    parser.add_argument(
        "--threads",
        "--workers",
        type=int,
        default=0,
        help="recordings at the same time; 0 = one per core (%(default)s)",
    )
    parser.add_argument("--register", metavar="PLACE", help="folder or s3://BUCKET/PREFIX of the register")


def run(args: argparse.Namespace) -> int:
    """Anonymize; 0 when every recording that was not skipped by request has its output."""
    require_least(args, threads=0)
    if not -70 <= args.loudness <= 0:
        raise InputError(f"--loudness must lie in [-70, 0] LUFS, got {args.loudness:g}")
    if not (args.pad_to == 0 or 0.1 <= args.pad_to <= 3600):
        raise InputError(f"--pad-to must be 0, or lie in [0.1, 3600] seconds, got {args.pad_to:g}")
    if not (args.window == 0 or 5 <= args.window <= 3600):
        raise InputError(f"--window must be 0, or lie in [5, 3600] seconds, got {args.window:g}")
    bundle = read_bundle(locate_model(args.model, args.system))
    bundle = replace(bundle, rule=replace(bundle.rule, window=round(args.window * SAMPLE_RATE / HOP)))
    names = RandomNames.open(args.destination) if args.names == "random" else None
    work = find_work(
        args.source,
        args.destination,
        bundle,
        args.loudness,
        args.pad_to,
        names,
        file_format=args.format,
        plain=args.layout == "plain",
    )
    for bad in work.refused:
        print(f"voxveil: {bad.reason}", file=sys.stderr)
    if work.others:
        files = "1 other file is" if work.others == 1 else f"{work.others} other files are"
        print(f"voxveil: {files} left alone", file=sys.stderr)
    if work.refused and args.on_bad_audio == "fail":
        raise InputError(
            f"{len(work.refused)} of {_count(work)} recordings cannot be used; nothing was released"
            " (--on-bad-audio skip goes on without them)"
        )
    for job in work.jobs:
        for flag in sorted(_WARNINGS.keys() & set(job.flags)):
            print(f"voxveil: warning: {job.name}: {_WARNINGS[flag]}", file=sys.stderr)
        if job.damage:
            print(
                f"voxveil: warning: {job.output}: damaged ({job.damage}); drawn again and charged again",
                file=sys.stderr,
            )
    if not work.jobs:
        if not work.kept:
            raise InputError(f"all {_count(work)} recordings were refused; nothing was released")
        _write_tables(args, work)
        print(f"nothing to do: {len(work.kept)} outputs are there, {len(work.refused)} recordings skipped")
        return 0
    # Before the loss is announced: what cannot be loaded or written must not cost anything.
    register = open_register(args.register)
    _require_writable(work)
    anonymizer = Anonymizer(bundle, loudness=args.loudness)
    require_known(anonymizer, work.jobs)
    began = time.monotonic()
    with names.locked() if names is not None else contextlib.nullcontext():
        release = _announce(bundle, work, register, names)
        clipped = _release(anonymizer, work, release, args.threads)
    factor = (time.monotonic() - began) / _seconds(work)
    _write_tables(args, work)
    _report(bundle, work, release, clipped, args.format)
    print(
        f"  real-time factor {factor:.3g}: {_seconds(work):.1f} s of speech,"
        f" {args.threads or os.cpu_count() or 1} at the same time"
    )
    return 0


def _write_tables(args: argparse.Namespace, work: Work) -> None:
    if work.settings.get("layout") == DATA_FOLDER:
        names = [*work.kept, *(job.name for job in work.jobs)]
        outputs = {name: work.folder / "wav" / f"{name}.{args.format}" for name in names}
        write_tables(args.source, work.folder, outputs)


def _seconds(work: Work) -> float:
    return sum(job.samples for job in work.jobs) / SAMPLE_RATE


def _require_writable(work: Work) -> None:
    """Create and remove, in every output folder, a file as long in its name as its longest output."""
    longest: dict[Path, str] = {work.folder: "", work.records: "ledger.json"}
    for job in work.jobs:
        longest[job.output.parent] = max(
            longest.get(job.output.parent, ""), job.output.name, key=lambda name: len(os.fsencode(name))
        )
    for folder, name in sorted(longest.items()):
        new = [path for path in (folder, *folder.parents) if not path.exists()]
        probe = folder / f".{name}.{os.getpid()}.partial"  # the name storage.atomic writes to
        try:
            try:
                folder.mkdir(parents=True, exist_ok=True)
                probe.write_bytes(b"voxveil")
            finally:
                # An announcement that fails leaves nothing behind.
                with contextlib.suppress(OSError):
                    probe.unlink()
                for path in new:
                    if path.is_dir():
                        path.rmdir()
        except OSError as error:
            raise InputError(
                f"{folder}: {name} cannot be written there ({error.strerror or error}); nothing was released"
            ) from None


def _announce(bundle: Bundle, work: Work, register: Register, names: RandomNames | None) -> Release:
    entries = [
        Entry(
            job.name,
            job.sha256,
            bundle.rule.vectors(frames),
            bundle.rule.losses(frames),
            speaker=job.speaker or None,
        )
        for job in work.jobs
        for frames in (frame_count(job.samples),)
    ]
    ledger = Ledger.open(purpose="release", system=bundle.system, register=register)
    release = ledger.announce(entries, work.settings)
    for warning in release.warnings:
        print(f"voxveil: warning: {warning}", file=sys.stderr)
    work.folder.mkdir(parents=True, exist_ok=True)
    if names is not None:
        # Before any output has its name: a run that is stopped goes on with the same ones.
        names.save([*(job.name for job in work.jobs), *work.kept])
    write_ledger(work.records, release, private=names is not None)
    return release


def _release(anonymizer: Anonymizer, work: Work, release: Release, threads: int) -> int:
    """Write every output and return the number of clipped samples."""
    progress = Progress("anonymize", math.ceil(_seconds(work)), "second")
    counter, lock = Counter[str](), threading.Lock()

    def report_samples(samples: int, recordings: int = 0) -> None:
        with lock:
            counter["samples"] += samples
            counter["recordings"] += recordings
            note = f"{counter['recordings']} of {len(work.jobs)} recordings"
            progress.update(-(-counter["samples"] // SAMPLE_RATE), note)

    choose = JobTargets(anonymizer, work.jobs)

    def one(job: Job) -> int:
        rng, source = choose.rng(job), partial(choose.source, job)
        if len(anonymizer.bundle.rule.spans(frame_count(job.samples))) > 1:
            clipped = release_windows(anonymizer, job, release, report_samples, rng, source)
            report_samples(0, 1)
            return clipped
        audio = read_recording(job.source).audio
        if len(audio) != job.recorded:
            raise InputError(f"{job.source}: changed while it was being read; nothing was released of it")
        # Before anything is extracted: the silence is released like speech, and charged like it.
        audio = np.pad(audio, (0, job.samples - job.recorded))
        try:
            anonymized = anonymizer.anonymize_private(audio, rng, name=str(job.source), source=source(audio))
        except PrivacyError as error:
            raise PrivacyError(f"{job.source}: {error}") from None
        release.require(job.name, anonymized.losses, anonymized.vectors)
        data, clipped = encode_audio(anonymized.audio, job.name, job.output.suffix[1:].upper())
        write_bytes(job.output, data)
        report_samples(job.samples, 1)
        return clipped

    return sum(in_order(one, work.jobs, threads))


def _report(bundle: Bundle, work: Work, release: Release, clipped: int, file_format: str) -> None:
    done = {
        "original": "passed through UNPROTECTED",
        "mcadams": "changed by signal processing WITHOUT ANY GUARANTEE",
        "copy_synthesis": "spoken again WITHOUT ANY PROTECTION",
    }.get(bundle.kind, "anonymized")
    print(
        f"{bundle.system}: {len(work.jobs)} recordings {done}, {len(work.kept)} kept from an earlier run,"
        f" {len(work.refused)} skipped, {clipped} samples clipped;"
        f" 16 kHz mono {file_format.upper()} in {work.folder}"
    )
    for entry in release.entries[:_LISTED]:
        print(f"  {entry.input}: utterance {_promised(entry.utterance)}, K = {entry.vectors} vectors")
    if len(release.entries) > _LISTED:
        print(f"  ... and {len(release.entries) - _LISTED} more in ledger.json")
    if work.records != work.folder:
        print(f"  names are random; which is which, and the ledger, is in {work.records}: keep it private")
    for name, loss in bundle.rule.to_json().items():
        concentrated = loss["measure"] == "zcdp"
        norm = "L2" if concentrated else "L1"
        sensitivity = "" if loss["sensitivity"] is None else f", {norm} sensitivity {loss['sensitivity']}"
        amount = f"zCDP rho {loss['rho']}" if concentrated else f"epsilon {loss['epsilon']}"
        print(f"  {name}: {amount} per {loss['unit']} ({loss['mechanism']}{sensitivity})")
    print(f"  utterance {bundle.rule.formula}; an epsilon above ln N is no promise among N people")
    print(f"  announced as release {release.id} to {release.register}")
    if bundle.corpus.get("synthetic"):
        print(
            f"  note: this model was trained on synthetic speech (corpus {bundle.corpus.get('name')}):"
            " real voices come out rough, and how well it hides them was never measured"
        )


def _promised(loss: Loss) -> str:
    if loss.unbounded:
        return "epsilon unbounded (no promise)"
    if loss.rho is None:
        return f"epsilon {loss.epsilon:g} nat"
    return f"zCDP rho {loss.rho:g}, epsilon {approximate(loss.rho):.6g} nat at delta {DELTA:g}"


def _count(work: Work) -> int:
    return len(work.jobs) + len(work.kept) + len(work.refused)
