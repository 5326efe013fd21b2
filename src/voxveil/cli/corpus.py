"""``voxveil corpus``: look at recordings, unpack a split, get or write a corpus."""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from voxveil.runtime.errors import InputError

if TYPE_CHECKING:
    from voxveil.corpus.source import Clip

__all__ = ["EPILOG", "HELP", "add_arguments", "run"]

HELP = "Check recordings, unpack a prepared split, download LibriSpeech, or write the embedded corpus."

EPILOG = """examples:
  voxveil corpus check recordings/
  voxveil corpus unpack outputs/prepare/public/pool pool/
  voxveil corpus fetch LibriSpeech/ dev-clean train-clean-100
  voxveil corpus speak embedded/ --params params.yaml
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``voxveil corpus``."""
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    check = actions.add_parser("check", help="one line per file that cannot be used, and a summary")
    check.add_argument("folder", type=Path, metavar="DIR")
    check.add_argument("--verbose", action="store_true", help="also show the flags of usable files")
    unpack = actions.add_parser("unpack", help="plain audio files and Kaldi tables of a prepared split")
    unpack.add_argument("split", type=Path, metavar="SPLIT_DIR")
    unpack.add_argument("out", type=Path, metavar="OUT")
    fetch = actions.add_parser("fetch", help="download LibriSpeech subsets; goes on after a stop")
    fetch.add_argument("out", type=Path, metavar="OUT")
    fetch.add_argument("subsets", nargs="+", metavar="SUBSET", help="e.g. dev-clean train-clean-100")
    fetch.add_argument("--url", help="another place that holds SUBSET.tar.gz (a mirror)")
    speak = actions.add_parser("speak", help="write the embedded corpus in LibriSpeech layout")
    speak.add_argument("out", type=Path, metavar="OUT")
    speak.add_argument("--params", type=Path, default=Path("params.yaml"), help="params file (%(default)s)")


def run(args: argparse.Namespace) -> int:
    """Run the action; ``check`` returns 1 if any file cannot be used."""
    if args.action == "check":
        return _check(args.folder, args.verbose)
    if args.action == "unpack":
        from voxveil.corpus.unpacking import unpack_split

        print(f"{args.out}: {unpack_split(args.split, args.out)} utterances")
        return 0
    if args.action == "fetch":
        return _fetch(args.out, args.subsets, args.url)
    return _speak(args.out, args.params)


def _check(folder: Path, verbose: bool) -> int:
    from voxveil.corpus.source import audio_files, check_file
    from voxveil.runtime.terminal import Progress

    if not folder.is_dir():
        raise InputError(f"{folder}: no such folder")
    paths = list(audio_files(folder))
    if not paths:
        raise InputError(f"{folder}: no audio files")
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
            if verbose and finding.flags:
                print(f"{path}: usable; {', '.join(finding.flags)}")
        progress.update(done)
    seen = "".join(f", {count} {flag}" for flag, count in sorted(flags.items()))
    print(f"{len(paths)} files: {len(paths) - refused} usable ({seconds:.1f} s), {refused} refused{seen}")
    return 1 if refused else 0


def _fetch(out: Path, subsets: list[str], url: str | None) -> int:
    from voxveil.corpus.download import LIBRISPEECH_MD5, LIBRISPEECH_URL, fetch_subset

    for name in subsets:
        if name not in LIBRISPEECH_MD5:
            raise InputError(f"no LibriSpeech subset {name!r}; subsets: {', '.join(LIBRISPEECH_MD5)}")
    for name in subsets:
        report = _megabytes(f"corpus fetch {name}")
        new = fetch_subset(name, out, url=(url or LIBRISPEECH_URL).rstrip("/"), report=report)
        print(f"{out / name}: {'complete' if new else 'is there already'}")
    return 0


def _megabytes(name: str) -> Callable[[int, int], None]:
    from voxveil.runtime.terminal import Progress

    shown: list[Progress] = []

    def report(done: int, total: int) -> None:
        if not shown:
            shown.append(Progress(name, max(total, done) >> 20 or 1, "MB", start=done >> 20))
        shown[0].update(done >> 20)

    return report


def _speak(out: Path, params_path: Path) -> int:
    from voxveil.audio.files import encode_flac
    from voxveil.config import load_params
    from voxveil.corpus.embedded import EmbeddedSource
    from voxveil.corpus.librispeech import write_librispeech
    from voxveil.corpus.opening import EMBEDDED, open_source
    from voxveil.runtime.atomic import whole_directory
    from voxveil.runtime.terminal import Progress

    params = load_params(params_path)
    source = open_source(params.prepare, params.base.seed)
    if not isinstance(source, EmbeddedSource):
        raise InputError(f"{params_path}: prepare.source must be {EMBEDDED!r}, got {params.prepare.source!r}")
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise InputError(f"{out}: is there already; give a new folder")
    progress = Progress("corpus speak", len(source.clips), "utterance")
    with whole_directory(out) as folder:

        def spoken() -> Iterator[tuple[Clip, bytes]]:
            for done, clip in enumerate(source.clips, 1):
                yield clip, encode_flac(source.read(clip).audio, clip.id)[0]
                progress.update(done)

        count = write_librispeech(folder, spoken())
    print(f"{out}: {count} utterances of synthetic speech, LibriSpeech layout")
    return 0
