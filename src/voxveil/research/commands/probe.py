"""``voxveil probe``: what released features carry, of words and of the speaker, against epsilon."""

from __future__ import annotations

import argparse
import subprocess
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from voxveil.research.probe import DRAWS
from voxveil.runtime.errors import InputError, ParamsError

if TYPE_CHECKING:
    from voxveil.config import Params

__all__ = ["EPILOG", "HELP", "add_arguments", "run", "run_experiment"]

HELP = "Measure pitch and content features by themselves: words, phones and speaker against epsilon."

EPILOG = """examples:
  voxveil probe run features/ --scale features-mini --set prepare.source=/data/LibriSpeech
                                 # a stage per variant, and per draw of its noise; run it again to resume
  voxveil probe content --variant sharp-10 --draw 1 --params params.yaml \\
      --public outputs/prepare/public --model outputs/train_content/sharp-10 --out probe/
  voxveil probe gather outputs/probe --out results/     # table, figures, results.json
  voxveil probe words --text LibriSpeech/train-clean-100 --tested LibriSpeech/test-clean \\
      --out features/words --probes features/outputs/probe    # resampled words against the floor
  voxveil probe utility --system anon --out utility/    # U_ASR: trained on and heard, 2 x 2
  voxveil probe utility --system anon --out utility/ --recognizer conformer    # words, by section asr
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``voxveil probe``."""
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    everything = actions.add_parser("run", help="train and probe every variant of a scale, resumable")
    everything.add_argument(
        "folder", type=Path, metavar="DIR", help="the experiment, a DVC project of its own"
    )
    everything.add_argument("--scale", default="features-mini", help="overlay in params/ (%(default)s)")
    everything.add_argument(
        "--set", action="append", default=[], metavar="PATH=VALUE", help="replace a value"
    )
    everything.add_argument(
        "--draws", type=int, default=DRAWS, help="draws of the noise per variant (%(default)s)"
    )
    for kind in ("pitch", "content"):
        one = actions.add_parser(kind, help=f"probe one draw of one {kind} variant")
        one.add_argument("--variant", required=True)
        one.add_argument("--draw", type=int, required=True, help="number of the draw, from 1 on")
        one.add_argument("--params", type=Path, default=Path("params.yaml"))
        one.add_argument("--public", type=Path, required=True, help="public output of prepare")
        one.add_argument("--model", type=Path, required=True, help=f"output of train-{kind} for the variant")
        one.add_argument("--out", type=Path, required=True)
    utility = actions.add_parser("utility", help="U_ASR: trained on original or anonymized speech, 2 x 2")
    utility.add_argument("--system", required=True, help="an anonymized system whose outputs are there")
    utility.add_argument(
        "--recognizer", choices=("hybrid", "conformer"), help="who judges (probe.recognizer unless told)"
    )
    utility.add_argument("--params", type=Path, default=Path("params.yaml"))
    utility.add_argument("--outputs", type=Path, default=Path("outputs"), help="of the chain (%(default)s)")
    utility.add_argument("--out", type=Path, required=True, metavar="DIR")
    words = actions.add_parser("words", help="word errors of resampled words against the floor of every one")
    public = words.add_mutually_exclusive_group(required=True)
    public.add_argument("--text", type=Path, nargs="+", metavar="PATH", help="public transcripts, for pi")
    public.add_argument("--language", type=Path, metavar="FILE", help="language.npz of an earlier run")
    words.add_argument("--tested", type=Path, nargs="+", required=True, metavar="PATH", help="transcripts")
    words.add_argument("--probes", type=Path, metavar="DIR", help="draw the content probes below it as well")
    words.add_argument("--general", choices=("pocketsphinx", "none"), default="pocketsphinx")
    words.add_argument("--longest", type=int, default=80, metavar="WORDS", help="of a string (%(default)s)")
    words.add_argument("--empty", type=float, default=1 / 64, help="share of the empty string (%(default)s)")
    words.add_argument("--alpha", type=float, default=0.1, help="share that is replaced (%(default)s)")
    words.add_argument(
        "--assumed", type=float, default=4.0, metavar="PERCENT", help="recognition errors (%(default)s)"
    )
    words.add_argument("--epsilon", type=float, nargs="+", metavar="E", help="of an utterance")
    words.add_argument("--drawn", type=int, default=50_000, metavar="N", help="sentences (%(default)s)")
    words.add_argument("--seed", type=int, default=17, help="of the public draws (%(default)s)")
    words.add_argument("--out", type=Path, required=True, metavar="DIR")
    gather = actions.add_parser("gather", help="table and figures of finished probes")
    gather.add_argument("folder", type=Path, metavar="DIR", help="folder with probe.json files below it")
    gather.add_argument("--out", type=Path, required=True, metavar="DIR")


def run(args: argparse.Namespace) -> int:
    """Run the action."""
    if args.action == "run":
        run_experiment(args.folder, args.scale, args.set, args.draws)
        return 0
    if args.action == "utility":
        return _utility(args)
    if args.action == "words":
        return _words(args)
    return _gather(args) if args.action == "gather" else _probe(args)


def _utility(args: argparse.Namespace) -> int:
    from voxveil.config import load_params
    from voxveil.config.sections import section_of, with_section
    from voxveil.corpus.split import Split
    from voxveil.research.params import ProbeParams
    from voxveil.research.probe.speeches import Speeches
    from voxveil.research.probe.utility import format_utility, utility_table
    from voxveil.runtime.atomic import write_json
    from voxveil.runtime.done import DONE, finish, require_done
    from voxveil.training.loop import use_threads

    params = load_params(args.params)
    if args.recognizer:
        knobs = replace(section_of(params, ProbeParams), recognizer=args.recognizer)
        params = with_section(params, knobs)
    if args.system not in params.systems:
        raise ParamsError(
            f"{args.params}: no system {args.system!r}; known: {', '.join(params.systems) or 'none'}"
        )
    outputs, made = args.outputs, args.outputs / "anonymize" / args.system
    places = {
        "public": outputs / "prepare/public",
        "private": outputs / "prepare/private",
        "attacker": made / "attacker",
        "released": made / "released",
    }
    for name, place in places.items():
        require_done(place, name)
    use_threads(params.base.threads)
    speeches = Speeches(
        Split(places["public"] / "attacker"),
        Split(places["attacker"]),
        Split(places["private"] / "private"),
        Split(places["released"]),
    )
    table = utility_table(speeches, params, args.out / "recognizers")
    # Trained recognizers are kept there, so the folder is not replaced; unfinished until the last line.
    (args.out / DONE).unlink(missing_ok=True)
    write_json(args.out / "u_asr.json", {**table, "system": args.system})
    finish(args.out, "probe_utility", args.system)
    print(format_utility(table))
    return 0


def _words(args: argparse.Namespace) -> int:
    from voxveil.metrics.plots import save_figure
    from voxveil.privacy.word_language import read_language, write_language
    from voxveil.privacy.words import Words
    from voxveil.research.probe.experiment_figures import floor_figure
    from voxveil.research.probe.gather import read_probes
    from voxveil.research.probe.word_floor import (
        RESULTS,
        FloorKnobs,
        floor_lines,
        floor_results,
        read_texts,
    )
    from voxveil.runtime.atomic import whole_directory, write_json
    from voxveil.utility.language.integer_weights import lexical_sentences, public_language
    from voxveil.utility.language.sphinx_language import sphinx_language_model
    from voxveil.utility.language.word_model import LanguageKnobs

    probes = read_probes(args.probes) if args.probes else ()
    tested = lexical_sentences(read_texts(args.tested))
    knobs = FloorKnobs(alpha=args.alpha, assumed=args.assumed, drawn=args.drawn, seed=args.seed)
    knobs = replace(knobs, epsilons=tuple(args.epsilon)) if args.epsilon else knobs
    facts: dict[str, Any] = {}
    if args.language is not None:
        language = replace(read_language(args.language), longest=args.longest)
    else:
        known = set(tested)
        sentences = [words for words in lexical_sentences(read_texts(args.text)) if words not in known]
        general = sphinx_language_model() if args.general == "pocketsphinx" else None
        shape = LanguageKnobs(order=3, words=80_000, share=0.3, prune=1e-8)
        language = public_language(sentences, general, shape, longest=args.longest, empty=args.empty)
        facts = {"sentences": len(sentences), "general": args.general, "empty": args.empty}
    results = floor_results(language, [Words(words) for words in tested], knobs, facts)
    with whole_directory(args.out) as folder:
        write_language(folder / "language.npz", language)
        write_json(folder / RESULTS, results)
        save_figure(floor_figure(results, probes), folder / "floor.png")
    print("\n".join(floor_lines(results)))
    return 0


def _probe(args: argparse.Namespace) -> int:
    from voxveil.config import load_params
    from voxveil.research.probe.pipeline import make_probe
    from voxveil.runtime.done import require_done

    params = load_params(args.params)
    require_done(args.public, "public")
    make_probe(args.action, args.public, args.model, args.out, params, args.variant, args.draw)
    return 0


def _gather(args: argparse.Namespace) -> int:
    from voxveil.research.probe.experiment import write_results

    print("\n".join(write_results(args.folder, args.out)))
    return 0


def run_experiment(folder: Path, scale: str, changes: Sequence[str], draws: int = DRAWS) -> None:
    """Train and probe every variant of a scale in a DVC project of its own; finished stages are kept.

    Args:
        folder: The project, new or one of these.
        scale: Overlay in ``params/``.
        changes: ``PATH=VALUE`` texts that replace its values.
        draws: Draws of the noise per variant.

    Raises:
        InputError: ``draws`` is below 1, or the folder is something else.
    """
    from voxveil.cli.repro import dvc_environment, dvc_program, reproduce
    from voxveil.config.compose import changes_of, compose, overlay_path, params_text
    from voxveil.research.probe.pipeline import CODE, FEATURES, dvc_yaml
    from voxveil.runtime.atomic import read_json, write_json, write_text

    if draws < 1:
        raise InputError(f"--draws must be at least 1, got {draws}")
    if folder.exists() and any(folder.iterdir()) and not (folder / "dvc.yaml").is_file():
        raise InputError(f"{folder}: not empty and not an experiment (no dvc.yaml in it); name a new folder")
    params = compose(overlay_path(scale, Path()), changes_of(changes))
    params = _from_here(params)
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in (("params.yaml", params_text(params)), ("dvc.yaml", dvc_yaml(params, draws))):
        if not (folder / name).is_file() or (folder / name).read_text(encoding="utf-8") != text:
            write_text(folder / name, text)
    code = _code()
    if not (folder / CODE).is_file() or read_json(folder / CODE) != code:
        write_json(folder / CODE, code)
    if not (folder / ".dvc").is_dir():
        subprocess.run(
            [str(dvc_program()), "init", "--quiet", "--no-scm"], cwd=folder, env=dvc_environment(), check=True
        )
    reproduce(folder)
    print((folder / FEATURES / "table.txt").read_text(encoding="utf-8"), end="")
    print(f"\npage, figures and every number: {folder / FEATURES}/index.html")


def _from_here(params: Params) -> Params:
    """Return the parameters with a relative corpus made absolute: the experiment runs in its own folder."""
    source = params.prepare.source
    if source == "embedded":
        return params
    if not Path(source).is_dir():
        raise ParamsError(f"prepare.source: {source}: no such folder; set it: --set prepare.source=DIR")
    return replace(params, prepare=replace(params.prepare, source=str(Path(source).resolve())))


def _code() -> dict[str, Any]:
    """Return the digests of the code behind each stage: what changed is run again."""
    from voxveil.research.probe.pipeline import GATHER_CODE, PROBE_CODE, PROBED
    from voxveil.stages.registry import stage_spec
    from voxveil.stages.run import code_digest, code_digests

    code: dict[str, Any] = {name: code_digests(stage_spec(name)) for name in ("prepare", *PROBED.values())}
    for stage, names in (("probe", PROBE_CODE), ("gather", GATHER_CODE)):
        code[stage] = {name: code_digest(name) for name in names}
    return code
