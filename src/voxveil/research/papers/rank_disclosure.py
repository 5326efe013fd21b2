"""Figures 2 to 4 and the table of the rank disclosure paper, of a finished chain and of given scores."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from pathlib import Path

from voxveil.research.papers.attacks import Chain, Judged, given_attacks, open_chain, warnings_table
from voxveil.research.papers.catalogue import ITEMS
from voxveil.research.papers.result import Cell, Drawn, Number, Options, Result, Source, Table
from voxveil.results.report.published import IDENTIFICATION, VPC2024
from voxveil.results.wording import number
from voxveil.runtime.errors import IncompleteInputError, InputError

__all__ = ["HISTOGRAMS", "MAKERS", "PAPER_REFERENCES"]

#: Attackers that hear only how often a pitch, or a sound, occurs.
HISTOGRAMS = ("f0_histogram", "phone_histogram")
#: N of the paper's pooled protocol.
PAPER_REFERENCES = 40
_PUBLISHED = Source(
    "published",
    "rank disclosure paper: identification rate, semi-informed, pooled, N = 40; VoicePrivacy 2024",
)
_FROM_RATE = Source("computed", "log2(N γ_1) of the published rate")
_EER = Source("published", "Table 3 of the worst-case paper: EER of the same systems")
_METRICS = (
    ("rank_max", "max, bit"),
    ("rank_mean", "mean, bit"),
    ("identification_rate", "identified, %"),
    ("rank_spread", "spread, fraction"),
)
_READING = (
    "Disclosure of rank k is log2(N γ_k) bit, γ_k the share of inputs whose right speaker came out at rank k:"
    " 0 at chance, log2 N if that rank always occurs. The identification rate is γ_1; spread is the share of"
    " ranks above chance, small where identity stands in a few ranks.",
    "'Direct' is the histogram itself, 'fit' the beta-binomial with two parameters. From few inputs the"
    " direct figures read disclosure into scatter, so a system that leaks nothing does not read 0; a"
    " table of its own says what it does read.",
)


def embeddings(project: Path, options: Options) -> Result:
    """Make figure 2: networks and prosody, trained on original speech."""
    chain = open_chain("srd-fig2", project, options)
    chosen = _ranked(a for a in chain.of("ignorant", "lazy_informed") if a.attacker not in HISTOGRAMS)
    return _result(chain, chosen, _figures(chosen, "ignorant"), published=False)


def representations(project: Path, options: Options) -> Result:
    """Make figure 3: histograms of F0 and of phones."""
    chain = open_chain("srd-fig3", project, options)
    attacked = {(a.system, a.attacker) for a in chain.attacks}
    systems = [summary["system"] for summary in chain.summaries]
    missing = [kind for kind in HISTOGRAMS if any((system, kind) not in attacked for system in systems)]
    if missing:
        kinds = ",".join(dict.fromkeys(a.attacker for a in chain.attacks))
        raise IncompleteInputError(
            f"srd-fig3: this run has no attacker {' and no '.join(missing)}; train_attacker.kinds lists who"
            f" attacks (here {kinds}); {ITEMS['srd-fig3'].commands(options.size)}"
        )
    chosen = _ranked(a for a in chain.of("ignorant", "lazy_informed") if a.attacker in HISTOGRAMS)
    return _result(chain, chosen, _figures(chosen, "ignorant"), published=False)


def semi_informed(project: Path, options: Options) -> Result:
    """Make figure 4."""
    chain, given = open_chain("srd-fig4", project, options, or_scores=True), _ranked(given_attacks(options))
    attacks = [*_ranked(chain.of("semi_informed")), *given]
    return _result(chain, attacks, _figures(attacks, "semi_informed"), published=True)


def table(project: Path, options: Options) -> Result:
    """Make the table: every attacker in every scenario."""
    chain, given = open_chain("srd-table", project, options, or_scores=True), _ranked(given_attacks(options))
    scenarios = ("ignorant", "lazy_informed", "semi_informed")
    measured = sorted(_ranked(chain.of(*scenarios)), key=lambda a: a.attacker)
    return _result(chain, [*measured, *given], [], published=True)


def _ranked(attacks: Iterable[Judged]) -> list[Judged]:
    """Return the attacks; one without ranks is an error."""
    found = list(attacks)
    for attack in found:
        if attack.histogram is None:
            raise InputError(
                f"{attack.source.location}: {attack.name} has no ranks: {attack.why or 'no matrix'}"
            )
    return found


def _figures(attacks: Sequence[Judged], scenario: str) -> list[Drawn]:
    """Return a figure for each attacker in a scenario."""
    shown = [a for a in attacks if a.scenario in (scenario, "original", "given")]
    kinds = dict.fromkeys(attack.attacker for attack in attacks)
    return [_figure(kind, [a for a in shown if a.attacker == kind]) for kind in kinds]


def _result(chain: Chain, attacks: list[Judged], figures: list[Drawn], *, published: bool) -> Result:
    return Result(
        [*_tables(attacks, published=published), *warnings_table(attacks)],
        figures,
        _differences(chain, attacks, published=published),
        (*chain.facts(), *_sizes(attacks)),
        _READING,
        chain.warnings(),
    )


def _figure(kind: str, attacks: Sequence[Judged]) -> Drawn:
    from voxveil.research.papers.figures import panels_figure

    alt = "; ".join(
        f"{a.system}: {number(a.metrics['identification_rate']['value'])} % identified among {a.references}"
        for a in attacks
    )
    return Drawn(
        f"ranks-{kind}",
        panels_figure(attacks),
        f"Rank histograms, attacker {kind}: bars the share of inputs, line the beta-binomial fit, dashed"
        " chance 1/N. A high first bar is identification.",
        alt,
        list(dict.fromkeys(a.ranked for a in attacks)),
    )


def _tables(attacks: Sequence[Judged], *, published: bool) -> list[Table]:
    """Return the metrics from histogram and fit, with their null ranges."""
    direct = _published_rows() if published else []
    for attack in attacks:
        sizes = f"{attack.references}, {attack.inputs} inputs"
        cells = [attack.number(metric) for metric, _ in _METRICS]
        direct.append([attack.system, attack.who, sizes, *cells, _first_rank(attack), attack.number("eer")])
    names = [metric for metric, _ in _METRICS]
    fit: list[list[Cell]] = [
        [attack.system, attack.who, *(attack.number(f"{metric}_bb") for metric in names)]
        for attack in attacks
    ]
    nothing: list[list[Cell]] = [
        [attack.system, attack.who, *(attack.nothing(metric) for metric in (*names[:3], "eer"))]
        for attack in attacks
    ]
    titles = [title for _, title in _METRICS]
    return [
        Table(
            "Direct, from the histogram; brackets: 95 % intervals (max, spread: ranges) over speakers",
            ("System", "Attack", "N", *titles, "rank 1, bit", "EER, %"),
            direct,
        ),
        Table("From the beta-binomial fit", ("System", "Attack", *titles), fit),
        Table(
            "What is read where nothing leaks, at worst (95 % of relabellings)",
            ("System", "Attack", *titles[:3], "EER, %"),
            nothing,
        ),
    ]


def _published_rows() -> list[list[Cell]]:
    eers = {system.name: system.eer for system in VPC2024}
    rows: list[list[Cell]] = []
    for name, rate in IDENTIFICATION.items():
        first = math.log2(PAPER_REFERENCES * rate / 100)
        row = f"published {name}"
        rows.append(
            [
                name,
                "published, semi-informed",
                str(PAPER_REFERENCES),
                "",
                "",
                Number(f"{row}/identification_rate", rate, "%", _PUBLISHED, digits=4),
                "",
                Number(f"{row}/rank 1", first, "bit", _FROM_RATE),
                Number(f"{row}/eer", eers[name], "%", _EER, digits=4),
            ]
        )
    return rows


def _first_rank(attack: Judged) -> Number | str:
    """Return log2(N gamma_1) of the first rank, what a published rate can be compared with."""
    rate, n = attack.metrics["identification_rate"]["value"], attack.references
    if not rate or not n:
        return "never first"
    return Number(f"{attack.name}/rank 1", math.log2(n * rate / 100), "bit", attack.source)


def _sizes(attacks: Sequence[Judged]) -> tuple[str, ...]:
    found = dict.fromkeys((a.references, a.inputs) for a in attacks)
    return tuple(f"pooled, N = {n}, {m} inputs" for n, m in found)


def _differences(chain: Chain, attacks: Sequence[Judged], *, published: bool) -> dict[str, str]:
    sizes = sorted({a.references for a in attacks if a.references})
    found = {}
    if chain.summaries:
        found["Speech"] = (
            "Published: VoicePrivacy 2024 systems on LibriSpeech. Here: systems of this run on"
            f" {chain.speech}; other systems, so rows show how much a form of protection leaks, not whose is"
            " better."
        )
        found["Attacker"] = (
            f"Here it is trained on what scale {chain.scale} has for it; a stronger one ranks the right"
            " speaker higher. Original speech is its easiest task and says how strong it is."
        )
    if sizes != [PAPER_REFERENCES]:
        n = ", ".join(str(size) for size in sizes)
        chance = ", ".join(f"{100 / size:.3g}" for size in sizes)
        full = ", ".join(f"{math.log2(size):.2f}" for size in sizes)
        found["N"] = (
            f"The paper pools {PAPER_REFERENCES} speakers, here N is {n}: chance identifies {chance} %"
            f" instead of {100 / PAPER_REFERENCES:.3g} %, and full disclosure is {full} bit instead of"
            f" {math.log2(PAPER_REFERENCES):.2f}. Compare bits; rates only against their own chance."
        )
    if not published:
        found["Published values"] = (
            "The paper shows this as a figure whose values are not at hand: what can be compared is its form."
        )
        return found
    found["Published values"] = (
        "Of the paper only the identification rates of two systems are at hand; the bits of their first rank"
        " follow from them, the other columns do not."
    )
    share = IDENTIFICATION["T10-2"] / 100
    ratio = math.log(share * (PAPER_REFERENCES - 1) / (1 - share))
    rank = next(system.rank for system in VPC2024 if system.name == "T10-2")
    found["Two papers, one system"] = (
        f"An identification rate of {100 * share:g} % among {PAPER_REFERENCES} is an LLR of {ratio:.1f} nat"
        f" at the first rank, more than the rank ε_max of {rank:g} nat that the worst-case paper gives for"
        " T10-2: they rank differently, and neither figure stands for the other."
    )
    return found


MAKERS = {"srd-fig2": embeddings, "srd-fig3": representations, "srd-fig4": semi_informed, "srd-table": table}
