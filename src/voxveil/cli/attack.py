"""``voxveil attack``: attack anybody's anonymized speech and judge what is left."""

from __future__ import annotations

import argparse
import dataclasses
from pathlib import Path
from typing import TYPE_CHECKING, Any

from voxveil.cli.actions import require_least
from voxveil.runtime.errors import ParamsError, import_extra

if TYPE_CHECKING:
    from voxveil.attack.external.running import Attack
    from voxveil.attack.external.speech import External
    from voxveil.config.networks import TrainAttackerParams
    from voxveil.metrics.suite import SuiteOptions

__all__ = ["EPILOG", "HELP", "add_arguments", "run"]

HELP = "Attack anybody's anonymized speech: train the attackers on it, try them, and judge what is left."

EPILOG = """DIR holds anonymized speech in one of these layouts, each folder with Kaldi tables (wav.scp,
utt2spk, spk2gender), as a prepared split, or in LibriSpeech's layout:

  DIR/train/  DIR/test/  DIR/trials/enrol.scp,trials.txt  [DIR/original/train/  DIR/original/test/]
      train/: speech of speakers who are in no trial. attacker/ and released/ may stand for train/ and test/
  DIR/[data/][LANGUAGE/]SET_enrolls_SUFFIX  SET_trials_f_SUFFIX  ..._m_SUFFIX  or ..._mixed_SUFFIX
  train..._SUFFIX  [the same without SUFFIX: the originals]
      VoicePrivacy 2022 to 2026; the lists are the files 'enrolls' and 'trials' of these folders
  outputs/ of a chain: every system but the original, each against the same original speech

With originals every attacker is tried in the whole matrix: original (OO), ignorant (OA), lazy-informed and
semi-informed (AA). OUT/result.json has every metric with interval and conditions; OUT/scores names private
utterances, as the input does. A run that was stopped goes on where it was.

examples:
  voxveil attack mine/ --out attacked/
  voxveil attack Voice-Privacy-Challenge-2024/ --suffix _mcadams --out attacked/ --seeds 3
  voxveil attack mine/ --out attacked/ --attackers ecapa,f0_histogram,phone_histogram,prosody --fuse 40
  voxveil attack outputs/ --systems anon,anon_dp --attackers ecapa,prosody --out attacked/
"""

#: Sizes for an hour of speech or more; params of one's own: --set.
_SIZES = {"channels": 192, "embedding": 192, "steps": 400, "crop_seconds": 2.0}
#: Seeds that count where the first one's attacker did not converge.
_MORE_SEEDS = 3


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``voxveil attack``."""
    parser.add_argument("source", metavar="DIR", type=Path, help="anonymized speech and trial lists")
    parser.add_argument("--out", type=Path, required=True, metavar="OUT", help="folder for results")
    where = parser.add_argument_group("where things are, if not in DIR")
    where.add_argument("--suffix", default="", help="ending of the anonymized data folders, e.g. _mcadams")
    where.add_argument("--systems", default="", metavar="LIST", help="of a chain's outputs, by commas")
    where.add_argument("--lists", type=Path, metavar="DIR", help="enrol.scp and trials.txt")
    where.add_argument("--train", type=Path, metavar="DIR", help="anonymized training speech")
    where.add_argument("--original-train", type=Path, metavar="DIR", help="its originals")
    where.add_argument(
        "--original-test", type=Path, metavar="DIR", help="original enrolment and trial speech"
    )
    how = parser.add_argument_group("attackers")
    how.add_argument("--attackers", default="ecapa", metavar="LIST", help="kinds by commas (%(default)s)")
    how.add_argument(
        "--seeds",
        type=int,
        default=0,
        metavar="N",
        help=f"seeds of each; the strongest counts (1, and {_MORE_SEEDS} where it did not converge)",
    )
    how.add_argument(
        "--fuse", type=int, default=0, metavar="N", help="fuse all, on N training speakers held out"
    )
    how.add_argument(
        "--wavlm", default="", metavar="MODEL", help="imported WavLM or HuBERT: a folder, s3:// or models:/"
    )
    how.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="a parameter of train_attacker, e.g. steps=2000, noise=0.5",
    )
    how.add_argument("--seed", type=int, default=17, help="seed of training and draws (%(default)s)")
    how.add_argument("--threads", type=int, default=0, metavar="N", help="CPU threads (0: all)")
    judge = parser.add_argument_group("judging")
    judge.add_argument("--rank-inputs", type=int, default=4, metavar="N", help="per speaker (%(default)s)")
    judge.add_argument("--replicates", type=int, default=200, metavar="N", help="behind intervals (200)")
    judge.add_argument("--no-figures", action="store_true", help="draw nothing")


def run(args: argparse.Namespace) -> int:
    """Find, train, attack, judge, write, print."""
    import_extra("torch", "train")
    import_extra("soundfile", "train")
    if not args.no_figures:
        import_extra("matplotlib", "plots")
    require_least(args, seeds=0, replicates=0, rank_inputs=1)
    from voxveil.attack.attackers.registry import listed_kinds
    from voxveil.attack.external.layouts import find_external
    from voxveil.attack.external.running import Attack
    from voxveil.config.fields import listed
    from voxveil.metrics.suite import SuiteOptions
    from voxveil.runtime.atomic import write_json
    from voxveil.stages.train_attacker import with_local_models
    from voxveil.training.loop import use_threads

    params = with_local_models(_params(args))
    kinds = listed_kinds(params.kinds)
    use_threads(args.threads)
    external = find_external(
        args.source,
        suffix=args.suffix,
        lists=args.lists,
        train=args.train,
        original_test=args.original_test,
        original_train=args.original_train,
        systems=listed(args.systems),
    )
    options = SuiteOptions(replicates=args.replicates, seed=args.seed)
    results = []
    for test in external.sets:
        attack = Attack(test, params, args.out, args.seed, args.rank_inputs)
        seeds = {kind: _run(attack, kind, args.seeds, options) for kind in kinds}
        if params.fusion_speakers:
            attack.fuse(list(kinds), seeds)
        results.append(
            _judge(attack, [*kinds, *(["fusion"] if params.fusion_speakers else [])], options, args)
        )
    write_json(args.out / "result.json", _content(external, params, results, options))
    from voxveil.attack.external.attack_table import format_attacks

    print(format_attacks(results, external.notes))
    return 0


def _params(args: argparse.Namespace) -> TrainAttackerParams:
    """Return the attackers' parameters, checked like those of params.yaml."""
    import yaml

    from voxveil.config.load import parse_section
    from voxveil.config.networks import TrainAttackerParams

    values: dict[str, Any] = dict(_SIZES)
    for text in args.set:
        name, sign, value = text.partition("=")
        if not sign or not name:
            raise ParamsError(f"--set must be NAME=VALUE, e.g. steps=2000, got {text!r}")
        values[name.strip().removeprefix("train_attacker.")] = yaml.safe_load(value)
    values |= {"kinds": args.attackers}
    if args.wavlm:
        values["wavlm"] = args.wavlm
    if args.fuse:
        values["fusion_speakers"] = args.fuse
    params = parse_section(TrainAttackerParams, values, "train_attacker")
    if params.gpus > 1:
        raise ParamsError(f"train_attacker.gpus: must be 1 for 'voxveil attack', got {params.gpus}")
    return params


def _run(attack: Attack, kind: str, wanted: int, options: SuiteOptions) -> dict[str, int]:
    """Attack with a kind; return how many seeds it took on original and on anonymized speech.

    Where the number is not given, two more seeds are trained on the speech that the first one's attacker
    did not converge on: a weak attacker must not pass as privacy.
    """
    from voxveil.attack.attackers.registry import seeds_of
    from voxveil.attack.external.running import attack_folders
    from voxveil.metrics.attacked import evaluate_attack, not_converged_on

    seeds = dict.fromkeys(("original", "anonymized"), wanted or 1)
    attack.run(kind, seeds)
    if wanted or len(list(seeds_of(kind, _MORE_SEEDS))) == 1:
        return seeds
    found = [
        evaluate_attack(folder, options)[1]
        for folder in attack_folders(attack.scores)
        if folder.parent.name == kind
    ]
    weak = not_converged_on(found)
    if weak:
        print(
            f"{attack.test.name}: {kind} did not converge on {' and '.join(weak)} speech;"
            f" training seeds 2 to {_MORE_SEEDS}, the strongest counts"
        )
        seeds |= dict.fromkeys(weak, _MORE_SEEDS)
        attack.run(kind, seeds)
    return seeds


def _judge(
    attack: Attack, kinds: list[str], options: SuiteOptions, args: argparse.Namespace
) -> dict[str, Any]:
    """Evaluate every attack on a set, write its full JSON and figures; return what is shown of it."""
    from voxveil.attack.external.attack_table import MATRIX, judge_set
    from voxveil.attack.external.running import attack_folders
    from voxveil.runtime.atomic import write_json

    def keep(folder: Path, full: dict[str, Any], shown: dict[str, Any]) -> None:
        out = args.out / "results" / attack.test.name
        write_json(out / f"{shown['attacker']}-{shown['scenario']}.json", full)
        if not args.no_figures and shown["scenario"] == "semi_informed":
            _figures(folder, args.out / "figures" / attack.test.name / shown["attacker"])

    order = list(MATRIX)
    folders = [folder for folder in attack_folders(attack.scores) if folder.parent.name in kinds]
    folders.sort(key=lambda path: (kinds.index(path.parent.name), order.index(path.name)))
    speakers = {"train": len(attack.test.train.speakers), "test": len(attack.test.lists.enrolments)}
    result = judge_set(attack.test.name, folders, speakers, options, keep)
    if not args.no_figures:
        from voxveil.metrics.plots import attack_matrix_figure, save_figure

        figure = attack_matrix_figure(result["attacks"])
        save_figure(figure, args.out / "figures" / attack.test.name / "matrix.png")
    return result


def _figures(folder: Path, out: Path) -> None:
    from voxveil.cli.figures import score_figures
    from voxveil.metrics.evaluation import read_evaluation
    from voxveil.metrics.plots import save_figure

    found = read_evaluation(
        folder / "scores.txt",
        folder / "trials.txt",
        rank=folder / "rank.npz",
        utt2spk=folder / "utt2spk",
        enrolments=folder / "enrol.scp",
    )
    for name, figure in score_figures(found.scores, found.ranks):
        save_figure(figure, out / f"{name}.png")


def _content(
    external: External, params: TrainAttackerParams, results: list[dict[str, Any]], options: SuiteOptions
) -> dict[str, Any]:
    return {
        "format": 1,
        "layout": external.layout,
        "notes": list(external.notes),
        "train_attacker": dataclasses.asdict(params),
        "replicates": options.replicates,
        "sets": results,
    }
