"""Evaluated attacks of a finished pipeline and of external score files, in one form."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from voxveil.config.load import read_mapping
from voxveil.metrics.catalogue import METRICS
from voxveil.metrics.data import CountTable, FloatArray
from voxveil.metrics.pav import pav, smooth
from voxveil.metrics.ranks import rank_inputs
from voxveil.metrics.suite import SuiteOptions, evaluate_scores
from voxveil.research.papers.catalogue import ITEMS
from voxveil.research.papers.result import Number, Options, Source, Table, of_metric
from voxveil.research.papers.score_folders import ScoreFiles, find_score_files, find_systems
from voxveil.results.report.results import Summary, read_summaries, results_digest, same_corpus
from voxveil.results.report.shape import METRIC, Each, check_shape
from voxveil.results.wording import SYNTHETIC_NOTE, who_attacks
from voxveil.runtime.atomic import read_json
from voxveil.runtime.done import file_sha256, require_done
from voxveil.runtime.errors import IncompleteInputError, InputError, VoxveilError

__all__ = ["Chain", "Judged", "given_attacks", "open_chain", "pav_ceiling", "warnings_table"]

_NO_CHAIN = "No system of this project was evaluated: only the given and the published systems are shown."
_PRIVATE = (
    "The corpus is not public. These are statistics of its speakers, without noise and without any ε: show"
    " the page only to whoever may see their scores."
)


@dataclass(frozen=True)
class Judged:
    """One attack on one system with every metric.

    Attributes:
        system: Attacked system.
        attacker: Kind of attacker; ``external`` where only scores were given.
        scenario: ``original`` where the system is original speech, as in the tables of the papers.
        metrics: The ``metrics`` object of ``voxveil evaluate``.
        trials: Counts of trials and speakers.
        histogram: Rank histogram, None without ranks.
        source: File of the metrics.
        ranked: File of the rank histogram.
        scored: File of the scores.
        warnings: What its evaluation warned of.
        why: Why there are no ranks.
    """

    system: str
    attacker: str
    scenario: str
    metrics: Mapping[str, Any]
    trials: Mapping[str, Any]
    histogram: FloatArray | None
    source: Source
    ranked: Source
    scored: Source
    warnings: tuple[str, ...] = ()
    why: str = ""

    @property
    def who(self) -> str:
        """Attacker and scenario as text."""
        return who_attacks({"attacker": self.attacker, "scenario": self.scenario})

    @property
    def name(self) -> str:
        """Prefix of its numbers' names."""
        return f"{self.system}/{self.attacker}/{self.scenario}"

    @property
    def references(self) -> int | None:
        """N of the rank attack."""
        return None if self.histogram is None else int(self.histogram.size)

    @property
    def inputs(self) -> int | None:
        """Inputs of the rank attack."""
        return None if self.histogram is None else round(float(self.histogram.sum()))

    def number(self, metric: str, *, digits: int = 3) -> Number:
        """Return a metric with interval, null and source."""
        return of_metric(f"{self.name}/{metric}", self.metrics[metric], self.source, digits=digits)

    def nothing(self, metric: str) -> Number | str:
        """Return the worse end of a metric's null range, empty where it is unknown."""
        found = self.metrics[metric]["null95"]
        if not found:
            return ""
        worse = 1 if METRICS[metric].higher_is == "worse" else 0
        note = f"{('lower', 'upper')[worse]} end of the 95 % range over relabellings"
        name = f"{self.name}/{metric}/nothing"
        return Number(name, found[worse], self.metrics[metric]["unit"], self.source, note=note)

    def ceiling(self) -> Number:
        """Return the largest worst case that PAV can read from this many trials."""
        t, n = int(self.trials["target"]), int(self.trials["nontarget"])
        source = Source("computed", f"PAV with ZEBRA's smoothing of {t} targets all above {n} nontargets")
        return Number(f"{self.name}/eps_max_pav/ceiling", pav_ceiling(t, n), "nat", source)


@dataclass(frozen=True)
class Chain:
    """The finished chain of a project, or none where only score files were given.

    Attributes:
        project: The checkout.
        summaries: ``summary.json`` of every system, in the order of the parameters; empty without a chain.
        attacks: Every attack on every system.
    """

    project: Path
    summaries: Sequence[Summary]
    attacks: Sequence[Judged]

    @property
    def corpus(self) -> Mapping[str, Any]:
        """Facts of the corpus; there is one only where there is a chain."""
        return same_corpus(self.summaries)

    @property
    def speech(self) -> str:
        """The corpus in words."""
        return f"{self.corpus['name']}{' of synthetic voices' if self.corpus['synthetic'] else ''}"

    @property
    def scale(self) -> str:
        """Overlay that it was run at."""
        return str(self.summaries[0]["scale"])

    def facts(self) -> tuple[str, ...]:
        """Return its conditions in a few words each."""
        if not self.summaries:
            return ("score files only",)
        corpus = self.corpus
        return (
            f"corpus {corpus['name']}{', synthetic' if corpus['synthetic'] else ''}",
            f"data revision {str(corpus['revision'])[:12]}",
            f"scale {self.scale}",
            f"{len(self.summaries)} systems",
            f"intervals by {self.summaries[0]['replicates']} draws of speakers",
        )

    def warnings(self) -> tuple[str, ...]:
        """Return the warnings that precede any number."""
        if not self.summaries:
            return (_NO_CHAIN,)
        found = [f"Synthetic speech. {SYNTHETIC_NOTE}"] if self.corpus["synthetic"] else []
        return (*found, *([] if self.corpus["public"] else [_PRIVATE]))

    def of(self, *scenarios: str) -> list[Judged]:
        """Return the attacks of some scenarios and those on original speech, without the fusion.

        Raises:
            IncompleteInputError: A system has none: nothing is shown of those that happen to have some.
        """
        chosen = (*scenarios, "original")
        found = [a for a in self.attacks if a.scenario in chosen and a.attacker != "fusion"]
        attacked = {attack.system for attack in found}
        for summary in self.summaries:
            if summary["system"] not in attacked:
                raise IncompleteInputError(
                    f"{self.project}: system {summary['system']} has no attack {' or '.join(scenarios)};"
                    " run its score and evaluate stages again"
                )
        return found

    def score_files(self, attack: Judged) -> ScoreFiles:
        """Return the scores behind an attack."""
        folder = self.project / "outputs/score" / attack.system
        if not folder.exists():
            raise IncompleteInputError(
                f"{folder} does not exist; DVC's chain has it, of a run on Kubeflow 'voxveil pipeline fetch"
                " RUN --scores' brings it"
            )
        require_done(folder, f"score[{attack.system}]")
        scenario = "semi_informed" if attack.scenario == "original" else attack.scenario
        return find_score_files(folder / attack.attacker / scenario)


def open_chain(name: str, project: Path, options: Options, *, or_scores: bool = False) -> Chain:
    """Read the finished chain of a project; nothing of it may be missing.

    Args:
        name: The item that needs it, for the message.
        project: The checkout.
        options: Its size says which commands a message names.
        or_scores: With ``--scores`` a project where no system was ever evaluated is a chain without any;
            one that was begun and is not finished stays an error.

    Raises:
        IncompleteInputError: In one line what is missing and the commands that make it.
    """
    if or_scores and options.scores is not None and not (Path(project) / "outputs/evaluate").exists():
        return Chain(Path(project), (), ())
    try:
        return _read(Path(project))
    except VoxveilError as error:
        raise IncompleteInputError(f"{error}; {ITEMS[name].commands(options.size)}") from None


def _read(project: Path) -> Chain:
    # Only names and scale: an older checkout's other parameters need not be known here.
    params = read_mapping(project / "params.yaml")
    base, named = params.get("base"), params.get("systems")
    if not isinstance(base, dict) or not isinstance(named, dict) or not named:
        raise InputError(f"{project / 'params.yaml'}: needs sections base and systems")
    for system, settings in named.items():
        if not isinstance(settings, dict):
            raise InputError(
                f"{project / 'params.yaml'}: systems.{system} must be a section, got {settings!r}"
            )
    systems = [str(system) for system in named]
    folder = project / "outputs/evaluate"
    files = {system: require_done(folder / system, f"evaluate[{system}]").files for system in systems}
    digest = results_digest(folder, systems)
    summaries = read_summaries(folder, systems)
    scale = base.get("scale")
    for summary in summaries:
        if summary["scale"] != scale:
            raise IncompleteInputError(
                f"{folder / summary['system']}: is of scale {summary['scale']}, params.yaml of {scale}"
            )
    attacks = []
    for summary in summaries:
        system = summary["system"]
        scores = _score_files(project, system)
        for attack in summary["attacks"]:
            file = f"{attack['attacker']}-{attack['scenario']}.json"
            run = f"tags.`voxveil.results` = '{digest}' and tags.`voxveil.system` = '{system}'"
            source = _file(f"outputs/evaluate/{system}", file, files[system], run)
            summed = _file(f"outputs/evaluate/{system}", "summary.json", files[system], run)
            path = f"{attack['attacker']}/{attack['scenario']}/scores.txt"
            scored = _file(f"outputs/score/{system}", path, scores, run)
            histogram = np.array(attack["rank_histogram"], np.float64) if attack["rank_histogram"] else None
            scenario = "original" if summary["kind"] == "original" else attack["scenario"]
            metrics, warned = _metrics(folder / system / file), _texts(attack)
            where = source, summed, scored, warned
            attacks.append(
                Judged(system, attack["attacker"], scenario, metrics, attack["trials"], histogram, *where)
            )
    return Chain(project, summaries, attacks)


class _Metrics(dict[str, Any]):
    """Metrics of a file; one that an earlier version did not write is named with the file."""

    def __init__(self, path: Path, entries: Mapping[str, Any]) -> None:
        super().__init__(entries)
        self.path = path

    def __missing__(self, name: str) -> Any:
        raise IncompleteInputError(f"{self.path}: metrics.{name} is missing; run its evaluate stage again")


def _metrics(path: Path) -> Mapping[str, Any]:
    content = read_json(path)
    check_shape(path, content, {"metrics": Each(METRIC)})
    return _Metrics(path, content["metrics"])


def _texts(attack: Mapping[str, Any]) -> tuple[str, ...]:
    return tuple(warning["text"] for warning in attack["warnings"])


def _file(folder: str, file: str, digests: Mapping[str, str], run: str) -> Source:
    return Source("file", f"{folder}/{file}", digests.get(file, ""), run)


def _score_files(project: Path, system: str) -> Mapping[str, str]:
    """Return the digests of a system's score files; none where they are kept elsewhere."""
    folder = project / "outputs/score" / system
    return require_done(folder, f"score[{system}]").files if folder.is_dir() else {}


def given_attacks(options: Options, only: str = "") -> list[Judged]:
    """Judge the score files of ``--scores``, one folder per system; none where not given.

    Args:
        options: Where they are, and how to judge them.
        only: One system; empty judges all.
    """
    if options.scores is None:
        return []
    how = SuiteOptions(replicates=options.replicates, seed=options.seed)
    found = []
    for system, files in find_systems(options.scores).items():
        if only not in ("", system):
            continue
        given = files.read()
        full = evaluate_scores(given.scores, given.ranks, options=how, rank_reason=given.rank_reason)
        histogram = None if given.ranks is None else rank_inputs(given.ranks).histogram()
        source, ranked = (
            Source("file", f"{system}/{path.name} (of --scores)", file_sha256(path))
            for path in (files.scores, files.rank or files.scores)
        )
        judged = Judged(
            system, "external", "given", full["metrics"], full["trials"], histogram, source, ranked, source
        )
        found.append(replace(judged, warnings=_texts(full), why=given.rank_reason or ""))
    return found


def warnings_table(attacks: Sequence[Judged]) -> list[Table]:
    """Return a list with the table of the attacks' warnings, empty without any."""
    rows = [[attack.system, attack.who, text] for attack in attacks for text in attack.warnings]
    return [Table("What the evaluation warns of", ("System", "Attack", "Warning"), rows)] if rows else []


def pav_ceiling(n_target: int, n_nontarget: int) -> float:
    """Return the largest |LLR| in nat of smoothed PAV on this many trials, for perfect separation."""
    apart = CountTable(
        np.array([0.0, 1.0]), np.array([0, n_target]), np.array([n_nontarget, 0]), n_target, n_nontarget
    )
    return smooth(pav(apart)).max_abs_llr()
