"""``voxveil data``: dataset versions of a team, from consent given to consent withdrawn."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from voxveil.cli.actions import add_action, add_actions
from voxveil.runtime.errors import InputError

if TYPE_CHECKING:
    from voxveil.datasets.face import Face

__all__ = ["EPILOG", "HELP", "add_arguments"]

HELP = "Register, list, compare, fetch and forget versions of datasets."

EPILOG = """Dataset NAME is the folder data/NAME, tracked by DVC, with two files for Git and for review:
data/NAME.manifest.tsv (utterance, speaker, sex, subset, seconds, SHA-256) and data/NAME.json
(speakers, hours, hash). A version is a Git revision. Speaker ids stand in Git: they must be
pseudonyms, and the repository of a private dataset must be private itself.

examples:
  voxveil data init --remote s3://speech/voxveil --endpoint https://s3.example.org
  voxveil data add clinic recordings/ --private
  voxveil data add dev-clean --url https://www.openslr.org/resources/12/dev-clean.tar.gz \\
      --md5 42e2234ba48799c1f50f24a7926300a1
  voxveil data list
  voxveil data diff clinic v1 v2
  voxveil data get clinic --rev v1 --out clinic-v1 --repo https://git.example.org/team/voxveil.git
  voxveil data forget 61
  voxveil data forget 61 --yes
  voxveil data ACTION --help
"""

_EXAMPLES = {
    "init": """examples:
  export AWS_ACCESS_KEY_ID=... AWS_SECRET_ACCESS_KEY=...
  voxveil data init --remote s3://speech/voxveil --endpoint https://s3.example.org --region us-east-1
  voxveil data init --remote s3://speech/voxveil --deleted-days 30

Keys come from AWS_* or from .dvc/config.local (dvc remote modify --local team access_key_id ...),
never from here, and are never written into .dvc/config.""",
    "add": """examples:
  voxveil data add clinic recordings/ --private
  voxveil data add clinic data/clinic            # what was changed in place
  voxveil data add dev-clean --url https://www.openslr.org/resources/12/dev-clean.tar.gz \\
      --md5 42e2234ba48799c1f50f24a7926300a1

DIR is in LibriSpeech, LibriTTS or Kaldi layout. Above 10,000 files the audio goes, byte for byte,
into tar shards of at most 2,000 utterances with Kaldi tables; 'prepare.source: data/NAME' reads
both. Nothing is committed or pushed: look at the manifest first.""",
    "list": """examples:
  voxveil data list              # every version in the history of what is checked out
  voxveil data list clinic
  voxveil data list --rev v1     # what v1 holds""",
    "diff": """examples:
  voxveil data diff clinic v1 v2
  voxveil data diff clinic HEAD~1 HEAD --json""",
    "get": """examples:
  voxveil data get clinic --rev v1 --out clinic-v1
  voxveil data get clinic --rev main --out clinic --repo git@git.example.org:team/voxveil.git

Needs no clone. The folder appears whole, every file checked against the manifest, or not at all.""",
    "forget": """examples:
  voxveil data forget 61                 # where speaker 61 is; changes nothing
  voxveil data forget 61 --yes           # the next version of each dataset, without 61
  voxveil data forget 61 --gc            # after commit and push: delete their audio here and on the remote

An id may be another person's in another dataset: --dataset NAME looks at that one only.""",
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``voxveil data``."""
    actions = add_actions(parser)

    def action(
        name: str, run: Callable[[argparse.Namespace], int], help_line: str
    ) -> argparse.ArgumentParser:
        return add_action(
            actions,
            name,
            run,
            help_line,
            description=f"{help_line[0].upper()}{help_line[1:]}.",
            epilog=_EXAMPLES[name],
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )

    init = action("init", _init, "make an S3 folder the default place of the data, and check it")
    init.add_argument("--remote", required=True, metavar="s3://BUCKET/PREFIX")
    init.add_argument("--endpoint", default="", metavar="URL", help="S3 server; AWS unless told")
    init.add_argument("--region", default="", metavar="R")
    init.add_argument("--name", default="team", help="what DVC calls the remote (%(default)s)")
    init.add_argument(
        "--deleted-days", type=int, default=90, metavar="N", help="keep deleted objects so long (%(default)s)"
    )
    init.add_argument(
        "--upload-days",
        type=int,
        default=7,
        metavar="N",
        help="keep unfinished uploads so long (%(default)s)",
    )
    add = action("add", _add, "register a corpus as the next version of a dataset")
    add.add_argument("name", metavar="NAME")
    add.add_argument("folder", type=Path, nargs="?", metavar="DIR")
    add.add_argument("--url", metavar="URL", help="a LibriSpeech archive, SUBSET.tar.gz, instead of DIR")
    add.add_argument("--md5", metavar="HEX", help="of the archive")
    seen = add.add_mutually_exclusive_group()
    seen.add_argument("--private", action="store_true", help="speech of people who are to be protected")
    seen.add_argument(
        "--public", action="store_true", help="speech anybody may hear (a new dataset's default)"
    )
    add.add_argument("--shards", action="store_true", help="store as tar shards, however few files")
    listing = action("list", _list, "show the versions of datasets")
    listing.add_argument("names", nargs="*", metavar="NAME")
    listing.add_argument("--rev", metavar="REV", help="only what this revision holds")
    diff = action("diff", _diff, "show what changed between two versions of a dataset")
    diff.add_argument("name", metavar="NAME")
    diff.add_argument("before", metavar="A")
    diff.add_argument("after", metavar="B")
    get = action("get", _get, "fetch one version of a dataset, without a clone")
    get.add_argument("name", metavar="NAME")
    get.add_argument("--rev", required=True, metavar="REV")
    get.add_argument("--out", required=True, type=Path, metavar="DIR")
    get.add_argument("--repo", metavar="URL_OR_PATH", help="Git repository (the current one)")
    forget = action("forget", _forget, "show where a speaker is, and take them out")
    forget.add_argument("speaker", metavar="SPEAKER")
    forget.add_argument("--dataset", action="append", default=[], metavar="NAME", help="only this dataset")
    what = forget.add_mutually_exclusive_group()
    what.add_argument("--yes", action="store_true", help="write new versions without the speaker")
    what.add_argument("--gc", action="store_true", help="delete what no current version needs, for good")
    for subcommand in (listing, diff):
        subcommand.add_argument("--json", action="store_true", help="print JSON")


def _init(args: argparse.Namespace) -> int:
    from voxveil.datasets.dataset import find_root
    from voxveil.datasets.remote import Settings, set_up

    settings = Settings(
        args.remote, args.name, args.endpoint, args.region, args.deleted_days, args.upload_days
    )
    for line in set_up(find_root(), settings):
        print(line)
    print("next: git add .dvc/config && git commit -m 'Data remote'")
    return 0


def _add(args: argparse.Namespace) -> int:
    from voxveil.datasets.adding import add_dataset
    from voxveil.datasets.dataset import Dataset, find_root

    root = find_root()
    public = False if args.private else True if args.public else None
    if args.url is not None:
        from voxveil.datasets.adding import import_dataset

        if args.folder is not None or args.md5 is None:
            raise InputError("data add: --url URL needs --md5 HEX and no DIR")
        face = import_dataset(
            root, args.name, args.url, args.md5, public=public, shards=args.shards, reports=_report
        )
        more = [f"data/{args.name}.tar.gz.dvc"]
    elif args.folder is None or args.md5 is not None:
        raise InputError("data add: needs either DIR, or --url URL with --md5 HEX")
    else:
        face = add_dataset(root, args.name, args.folder, public=public, shards=args.shards, reports=_report)
        more = []
    print(_line(face))
    _next(" ".join((*Dataset(root, args.name).in_git, *more)), f"Dataset {args.name}")
    if not face.public:
        print(f"private: data/{args.name}.manifest.tsv goes into Git; its ids must be pseudonyms")
    return 0


def _list(args: argparse.Namespace) -> int:
    from voxveil.datasets.dataset import find_root
    from voxveil.datasets.history import all_versions, uncommitted, versions_at
    from voxveil.datasets.listing import print_json, print_table

    root = find_root()
    if args.rev is None:
        versions = all_versions(root, args.names)
    else:
        versions = versions_at(root, args.rev)
        versions = [version for version in versions if not args.names or version.name in args.names]
    missing = sorted(set(args.names) - {version.name for version in versions})
    if missing:
        raise InputError(
            f"dataset {missing[0]}: has no version {'at ' + args.rev if args.rev else 'in the Git history'}"
        )
    (print_json if args.json else print_table)(versions)
    if not args.json and args.rev is None:
        for name in uncommitted(root):
            print(f"{name}: the version in the work tree is not committed")
    return 1 if any(version.fault for version in versions) else 0


def _diff(args: argparse.Namespace) -> int:
    from voxveil.datasets.changes import compare
    from voxveil.datasets.dataset import check_name, find_root
    from voxveil.datasets.history import rows_at
    from voxveil.datasets.listing import print_changes
    from voxveil.runtime.atomic import dump_json

    root, name = find_root(), check_name(args.name)
    changes = compare(rows_at(root, name, args.before), rows_at(root, name, args.after))
    if args.json:
        sys.stdout.write(dump_json(changes.to_json()))
    else:
        print_changes(name, args.before, args.after, changes)
    return 0


def _get(args: argparse.Namespace) -> int:
    from voxveil.datasets.dataset import find_root
    from voxveil.datasets.getting import get_version

    repository = args.repo or str(find_root())
    face, _ = get_version(repository, args.name, args.rev, args.out)
    print(f"{args.out}: {_line(face)}")
    return 0


def _forget(args: argparse.Namespace) -> int:
    from voxveil.datasets.dataset import find_root
    from voxveil.datasets.everywhere import find_everywhere
    from voxveil.datasets.withdrawal import clean_up, print_everywhere, withdraw

    root = find_root()
    everywhere = find_everywhere(root, args.speaker, args.dataset)
    if args.gc:
        return clean_up(root, everywhere)
    print_everywhere(everywhere)
    if args.yes:
        for name, face in withdraw(root, everywhere, _report):
            print(f"\n{_line(face)}: without {args.speaker}")
            _next(f"data/{name}.dvc data/{name}.manifest.tsv data/{name}.json", "Consent withdrawn")
    return 1 if everywhere.gaps else 0


def _line(face: Face) -> str:
    kind = "public" if face.public else "private"
    return (
        f"dataset {face.name}: {face.speakers} speakers ({face.speakers_f} F, {face.speakers_m} M),"
        f" {face.utterances} utterances, {face.hours:.3f} h, {kind}, {face.storage},"
        f" hash {face.manifest_sha256[:12]}"
    )


def _next(paths: str, message: str) -> None:
    print(f"next: git add {paths} && git commit -m '{message}' && dvc push && git push")


def _report(total: int) -> Callable[[int], None]:
    from voxveil.runtime.terminal import Progress

    return Progress("data", total, "utterance").update
