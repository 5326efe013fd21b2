"""Table 3 and figure 3 of the worst-case paper: EER and four worst cases of a set of systems, and of one."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from voxveil.metrics.data import CountTable
from voxveil.research.papers.attacks import Chain, Judged, given_attacks, open_chain, warnings_table
from voxveil.research.papers.result import Cell, Drawn, Number, Options, Result, Source, Table
from voxveil.research.papers.score_folders import find_systems
from voxveil.results.report.published import ESTIMATORS, VPC2024
from voxveil.runtime.errors import InputError

__all__ = ["MAKERS"]

_PUBLISHED = Source(
    "published", "Table 3 of the worst-case paper: VoicePrivacy 2024 systems, semi-informed, LibriSpeech"
)
_READING = (
    "Read along a row: published EERs of 40 to 43 % stand beside worst cases of 0.9 to 9.9 nat. Read down a"
    " column: the four estimators order systems differently, so none is quoted alone. A worst case is a"
    " maximum: its brackets are a range over speakers, not a confidence interval.",
    "'If nothing leaks' is what 95 % of random relabellings of these same trials read: a value inside that"
    " range is no evidence of a leak, and no proof that there is none.",
)


def systems_table(project: Path, options: Options) -> Result:
    """Make table 3."""
    from voxveil.research.papers.figures import estimators_figure

    chain, given = open_chain("wcd-table3", project, options, or_scores=True), given_attacks(options)
    measured = [*chain.of("semi_informed"), *given]
    figure = Drawn(
        "eer_against_epsilon",
        estimators_figure(measured, VPC2024),
        "EER against the worst case by each estimator: crosses published, filled markers this run, squares"
        " given scores, bars ranges over speakers, numbers by EER; vertical line: 50 %.",
        "; ".join(
            f"{attack.system}: EER {_short(attack, 'eer')} %, PAV {_short(attack, 'eps_max_pav')} nat"
            for attack in measured
        ),
        [_PUBLISHED, *dict.fromkeys(attack.source for attack in measured)],
    )
    return Result(
        [_side_by_side(measured), _limits(measured), *warnings_table(measured)],
        [figure],
        _differences(chain, measured, given),
        chain.facts(),
        _READING,
        chain.warnings(),
    )


def one_system(project: Path, options: Options) -> Result:
    """Make figure 3 of one system."""
    from voxveil.metrics.plots import score_figure

    chain, attack, table = _chosen(project, options)
    name = f"{attack.system}, {attack.who}"
    drawn = Drawn(
        "scores",
        score_figure(table, title=f"{name}: EER {_short(attack, 'eer')} %"),
        f"Score distributions of {name}, and the log-likelihood ratio that each estimator reads from a score;"
        " dotted: no evidence.",
        f"EER {_short(attack, 'eer')} %; largest |LLR|: "
        + ", ".join(f"{title} {_short(attack, metric)} nat" for metric, (_, title) in ESTIMATORS.items()),
        [attack.source, attack.scored],
    )
    rows: list[list[Cell]] = []
    for metric, title in (("eer", "EER, %"), *((m, f"{t}, nat") for m, (_, t) in ESTIMATORS.items())):
        values = [system.value(metric) for system in VPC2024]
        published = Number(
            f"published/{metric}",
            float(np.median(values)),
            str(attack.metrics[metric]["unit"]),
            _PUBLISHED,
            (min(values), max(values)),
        )
        rows.append([title, attack.number(metric), attack.nothing(metric), published])
    header = ("Metric", "Measured", "If nothing leaks, at worst", "Published, median and range of 7 systems")
    measured = Table(f"{name}: {_counts(attack)}", header, rows)
    return Result(
        [measured, _ceiling_table(attack), *warnings_table([attack])],
        [drawn],
        _differences(chain, [attack], [attack] if attack.attacker == "external" else []),
        chain.facts(),
        _READING[1:],
        chain.warnings() if chain.summaries else (),
    )


def _chosen(project: Path, options: Options) -> tuple[Chain, Judged, CountTable]:
    """Return the attack of figure 3 and its scores: of the score files where they have the system."""
    files = find_systems(options.scores) if options.scores is not None else {}
    if options.system in files or (files and not (project / "outputs/evaluate").exists()):
        system = options.system or list(files)[-1]
        if system not in files:
            raise InputError(f"--system {system}: no such system in {options.scores}: {', '.join(files)}")
        found = given_attacks(options, only=system)
        return Chain(project, (), ()), found[0], files[system].table()
    chain = open_chain("wcd-fig3", project, options)
    names = [summary["system"] for summary in chain.summaries]
    system = options.system or names[-1]
    attacks = [candidate for candidate in chain.of("semi_informed") if candidate.system == system]
    if not attacks:
        raise InputError(f"--system {system}: no such system; there is: {', '.join([*names, *files])}")
    attack = next((candidate for candidate in attacks if candidate.attacker == "ecapa"), attacks[0])
    return chain, attack, chain.score_files(attack).table()


def _side_by_side(measured: Sequence[Judged]) -> Table:
    rows: list[tuple[float, list[Cell]]] = []
    for system in VPC2024:
        values = [(metric, system.value(metric)) for metric in ("eer", *ESTIMATORS)]
        cells = [
            Number(f"published {system.name}/{metric}", value, "%" if metric == "eer" else "nat", _PUBLISHED,
                   digits=4 if metric == "eer" else 3)
            for metric, value in values
        ]  # fmt: skip
        rows.append((system.eer, [system.name, "published", *cells]))
    for attack in measured:
        eer = attack.metrics["eer"]["value"]
        whose = "given scores" if attack.attacker == "external" else f"this run, {attack.who}"
        values_here = [attack.number("eer"), *(attack.number(metric) for metric in ESTIMATORS)]
        rows.append((math.inf if eer is None else eer, [attack.system, whose, *values_here]))
    titles = (f"ε_max {title}, nat" for _, title in ESTIMATORS.values())
    return Table(
        "Ordered by EER; brackets: 95 % interval (EER) or range (ε_max) over speakers",
        ("System", "Whose", "EER, %", *titles),
        [cells for _, cells in sorted(rows, key=lambda row: row[0])],
    )


def _limits(measured: Sequence[Judged]) -> Table:
    """Return the limits by the numbers of trials: PAV's ceiling, and the null ranges."""
    rows: list[list[Cell]] = []
    for attack in measured:
        nothings = [attack.nothing(metric) for metric in ESTIMATORS]
        rows.append([attack.system, attack.who, _counts(attack), attack.ceiling(), *nothings])
    nothing = (f"{title} if nothing leaks, at worst" for _, title in ESTIMATORS.values())
    header = ("System", "Attack", "Trials", "PAV can reach", *nothing)
    return Table("What these numbers of trials allow, in nat", header, rows)


def _ceiling_table(attack: Judged) -> Table:
    row: list[Cell] = [_counts(attack), attack.ceiling()]
    return Table("What this number of trials allows", ("Trials", "PAV can reach, nat"), [row])


def _counts(attack: Judged) -> str:
    trials = attack.trials
    ranks = f"; {attack.inputs} inputs among {attack.references}" if attack.references else ""
    speakers = f", {trials['speakers']} speakers" if trials["speakers"] else ""
    return f"{trials['target']} target, {trials['nontarget']} nontarget{speakers}{ranks}"


def _differences(chain: Chain, measured: Sequence[Judged], given: Sequence[Judged]) -> dict[str, str]:
    found = {}
    if chain.summaries:
        found["Speech and speakers"] = (
            "Published: test speakers of the VoicePrivacy 2024 Challenge (LibriSpeech test-clean)."
            f" Here: {chain.speech}, {_counts(chain.attacks[0])}. Fewer trials lower what PAV can"
            " reach and widen every range."
        )
        found["Attacker"] = (
            "Published: the challenge's ECAPA-TDNN, trained at full size on anonymized speech. Here"
            f" it is trained on what scale {chain.scale} has for it: a weaker attacker leaves a higher EER"
            " and smaller ε_max, which is no better privacy."
        )
        found["Systems"] = "They are other systems: rows of equal EER may be compared, names may not."
    if given:
        found["Given scores"] = (
            "Judged by the same metrics as ours. Where they are the official score files, EER and ε_max"
            " should agree with the published row up to repeated trials and the smoothing of PAV."
        )
    found["PAV's ceiling"] = (
        "With all trials told apart PAV still reads only what its end bins allow, a number set by how many"
        " trials there are: " + "; ".join(_ceilings(measured)) + "."
    )
    found["Gaussians and t"] = (
        "Both follow their tails to the most extreme score, so a single outlier sets them; the t fit is"
        " maximum likelihood here, where common software stops short of it."
    )
    found["Rank"] = (
        "From a beta-binomial fit, both signs: it is often set by the last rank, not by the first. Ours are"
        " ranks of a pooled attack, every input against the same references; how the published ranks were"
        " drawn is not known here."
    )
    return found


def _ceilings(measured: Sequence[Judged]) -> list[str]:
    by_size = {(attack.trials["target"], attack.trials["nontarget"]): attack.ceiling() for attack in measured}
    return [f"{ceiling.value:.2f} nat for {t} and {n}" for (t, n), ceiling in by_size.items()]


def _short(attack: Judged, metric: str) -> str:
    value = attack.metrics[metric]["value"]
    return "undefined" if value is None else f"{value:.1f}"


MAKERS = {"wcd-table3": systems_table, "wcd-fig3": one_system}
