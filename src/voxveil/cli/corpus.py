"""``voxveil corpus``: look at recordings, unpack a split, get or write a corpus."""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from voxveil.cli.actions import add_action, add_actions, add_params
from voxveil.runtime.errors import InputError

if TYPE_CHECKING:
    from voxveil.corpus.source import Clip

__all__ = ["EPILOG", "HELP", "add_arguments"]

HELP = "Check recordings, unpack a prepared split, download LibriSpeech, or write the embedded corpus."

EPILOG = """examples:
  voxveil corpus check recordings/
  voxveil corpus unpack outputs/prepare/public/pool pool/
  voxveil corpus fetch LibriSpeech/ dev-clean train-clean-100
  voxveil corpus speak embedded/ --params params.yaml
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``voxveil corpus``."""
    actions = add_actions(parser)
    check = add_action(actions, "check", _check, "one line per file that cannot be used, and a summary")
    check.add_argument("folder", type=Path, metavar="DIR")
    check.add_argument("--verbose", action="store_true", help="also show the flags of usable files")
    unpack = add_action(actions, "unpack", _unpack, "plain audio files and Kaldi tables of a prepared split")
    unpack.add_argument("split", type=Path, metavar="SPLIT_DIR")
    unpack.add_argument("out", type=Path, metavar="OUT")
    fetch = add_action(actions, "fetch", _fetch, "download LibriSpeech subsets; goes on after a stop")
    fetch.add_argument("out", type=Path, metavar="OUT")
    fetch.add_argument("subsets", nargs="+", metavar="SUBSET", help="e.g. dev-clean train-clean-100")
    fetch.add_argument("--url", help="another place that holds SUBSET.tar.gz (a mirror)")
    speak = add_action(actions, "speak", _speak, "write the embedded corpus in LibriSpeech layout")
    speak.add_argument("out", type=Path, metavar="OUT")
    add_params(speak)


def _unpack(args: argparse.Namespace) -> int:
    from voxveil.corpus.unpacking import unpack_split

    print(f"{args.out}: {unpack_split(args.split, args.out)} utterances")
    return 0


def _check(args: argparse.Namespace) -> int:
    """Print one line per file that cannot be used, and a summary; 1 if there is such a file."""
    from voxveil.corpus.source import audio_files, check_file
    from voxveil.runtime.terminal import Progress

    folder: Path = args.folder
    if not folder.is_dir():
        raise InputError(f"{folder}: no such folder")
    paths = list(audio_files(folder))
    if not paths:
        raise InputError(f"{folder}: has no audio files")
    progress = Progress("corpus check", len(paths), "file")
    flags: Counter[str] = Counter()
    refused, seconds = 0, 0.0
    for done, path in enumerate(paths, 1):
        finding = check_file(path)
        if finding.refused:
            refused += 1
            print(finding.refused)
        else:
            flags.update(finding.flags)
            seconds += finding.seconds
            if args.verbose and finding.flags:
                print(f"{path}: usable; {', '.join(finding.flags)}")
        progress.update(done)
    seen = "".join(f", {count} {flag}" for flag, count in sorted(flags.items()))
    print(f"{len(paths)} files: {len(paths) - refused} usable ({seconds:.1f} s), {refused} refused{seen}")
    return 1 if refused else 0


def _fetch(args: argparse.Namespace) -> int:
    from voxveil.corpus.download import LIBRISPEECH_MD5, LIBRISPEECH_URL, fetch_subset

    for name in args.subsets:
        if name not in LIBRISPEECH_MD5:
            raise InputError(f"no LibriSpeech subset {name!r}; subsets: {', '.join(LIBRISPEECH_MD5)}")
    for name in args.subsets:
        report = _megabytes(f"corpus fetch {name}")
        new = fetch_subset(name, args.out, url=(args.url or LIBRISPEECH_URL).rstrip("/"), report=report)
        print(f"{args.out / name}: {'complete' if new else 'is there already'}")
    return 0


def _megabytes(name: str) -> Callable[[int, int], None]:
    from voxveil.runtime.terminal import Progress

    shown: list[Progress] = []

    def report(done: int, total: int) -> None:
        if not shown:
            shown.append(Progress(name, max(total, done) >> 20 or 1, "MB", start=done >> 20))
        shown[0].update(done >> 20)

    return report


def _speak(args: argparse.Namespace) -> int:
    from voxveil.audio.files import encode_flac
    from voxveil.config import load_params
    from voxveil.corpus.embedded import EmbeddedSource
    from voxveil.corpus.librispeech import write_librispeech
    from voxveil.corpus.opening import EMBEDDED, open_source
    from voxveil.runtime.atomic import whole_directory
    from voxveil.runtime.terminal import Progress

    out: Path = args.out
    params = load_params(args.params)
    source = open_source(params.prepare, params.base.seed)
    if not isinstance(source, EmbeddedSource):
        raise InputError(f"{args.params}: prepare.source must be {EMBEDDED!r}, got {params.prepare.source!r}")
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise InputError(f"{out}: exists and is not an empty folder; name a new one")
    progress = Progress("corpus speak", len(source.clips), "utterance")
    with whole_directory(out) as folder:

        def spoken() -> Iterator[tuple[Clip, bytes]]:
            for done, clip in enumerate(source.clips, 1):
                yield clip, encode_flac(source.read(clip).audio, clip.id)[0]
                progress.update(done)

        count = write_librispeech(folder, spoken())
    print(f"{out}: {count} utterances of synthetic speech, LibriSpeech layout")
    return 0
