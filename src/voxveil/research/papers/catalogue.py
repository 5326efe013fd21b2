"""Catalogue of reproducible tables and figures: content, required inputs, and function."""

from __future__ import annotations

import importlib
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from voxveil.runtime.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from voxveil.research.papers.result import Options, Result

__all__ = ["ITEMS", "PAPERS", "SIZES", "Item", "item_named", "maker"]

#: The papers by the prefix of their items.
PAPERS = {
    "dp": "Differentially private speaker anonymization",
    "wcd": "Worst-case disclosure of speaker anonymization",
    "srd": "Similarity rank disclosure",
}

SIZES = ("mini", "full")

_SYSTEMS = {"mini": "systems-mini", "full": "librispeech"}
_FEATURES = {"mini": "features-mini", "full": "features"}
_EVERY_ATTACKER = {"mini": "attack-mini", "full": "papers"}
_EVERY_SYSTEM = {"mini": "papers-mini", "full": "papers"}


@dataclass(frozen=True)
class Item:
    """A table or figure of a paper.

    Attributes:
        name: As on the command line; its prefix names the paper.
        title: What it is called in the paper, and its subject.
        shows: What it shows, in plain words.
        needs: ``nothing``, ``features`` (a finished ``voxveil probe run``) or ``systems`` (a finished chain).
        module: Module of this package whose ``MAKERS`` has its function.
        overlays: Overlay in ``params/`` that makes what it needs, by size.
        scores: Whether it needs the scores themselves, beside what evaluate made of them.
        given: Whether it takes somebody else's score files.
    """

    name: str
    title: str
    shows: str
    needs: str
    module: str
    overlays: dict[str, str]
    scores: bool = False
    given: bool = False

    def commands(self, size: str) -> str:
        """Return the DVC and Kubeflow commands that produce the required inputs, as a clause."""
        scale = self.overlays[size]
        source = " --set prepare.source=CORPUS"
        use = f"voxveil params use {scale}{source}"
        if self.needs == "features":
            return (
                f"made by DVC: voxveil probe run DIR --scale {scale}{source}, named by --features DIR (or"
                f" --run{source}); by Kubeflow: {use} && voxveil pipeline submit --pipeline probe_features"
                " --params params.yaml, whose output experiment is named by --features"
            )
        return (
            f"made by DVC: {use} && dvc repro (or --run{source}); by Kubeflow: {use} &&"
            " voxveil pipeline submit --params params.yaml, and when it has ended: voxveil pipeline fetch RUN"
            f" --project DIR{' --scores' if self.scores else ''}"
        )

    @property
    def paper(self) -> str:
        """Title of its paper."""
        return PAPERS[self.name.partition("-")[0]]


#: Makers of items with equal needs.
_simulated = partial(Item, needs="nothing", module="simulation", overlays={})
_of_features = partial(Item, needs="features", module="features", overlays=_FEATURES)
_of_chain = partial(Item, needs="systems", module="systems", overlays=_EVERY_SYSTEM)
_of_worst_cases = partial(Item, needs="systems", module="worst_case", overlays=_SYSTEMS, given=True)
_of_ranks = partial(Item, needs="systems", module="rank_disclosure", overlays=_SYSTEMS)

_WORST_CASE = (
    _simulated(
        "wcd-fig1",
        "Figure 1: same mean, unequal variance",
        "Scores of N(0, 2²) for the same speaker against N(0, 1) for another: the EER is 50 %, and the tails"
        " are all the same speaker's.",
    ),
    _simulated(
        "wcd-fig2",
        "Figure 2: the likelihood ratio that the EER hides",
        "For the scores of figure 1 the true log-likelihood ratio of every score, and what each estimator"
        " makes of a sample.",
    ),
    Item(
        "wcd-table2",
        "Table 2: two examples for PAV",
        "Six scores with labels 0 1 0 1 0 1 and 1 0 1 0 1 0, and both repeated to length 6n: the worst case"
        " stays log 2 and 0 while the EER goes to 50 %.",
        "nothing",
        "pav_examples",
        {},
    ),
)

_ANONYMIZATION = (
    _of_features(
        "dp-fig3",
        "Figure 3: pitch tracks",
        "The pitch of a few public utterances before and after, for each mechanism and ε.",
    ),
    _of_features(
        "dp-fig5",
        "Figure 5: who is named by pitch or content alone",
        "The error of naming the speaker (P_ASI) from pitch or from content features, against ε.",
    ),
    _of_features(
        "dp-fig6",
        "Figure 6: pitch, ours against naive noise",
        "What is left of the pitch, and who is named by it, by the autoencoder and by noise on the F0.",
    ),
    _of_chain(
        "dp-fig7",
        "Figure 7: privacy of the systems",
        "EER and unlinkability of Anon, Anon+PC, Anon+DP_Pitch, Anon+DP_BN and Anon+DP against ε.",
    ),
    _of_chain(
        "dp-fig8",
        "Figure 8: utility of the systems",
        "Words and intonation that are left, for the same systems against ε.",
    ),
    _of_chain(
        "dp-appendix-b",
        "Appendix B: target voices by utterance or by speaker",
        "The same system with a target voice for each utterance and with one for all of a speaker.",
    ),
    _of_chain(
        "dp-appendix-c",
        "Appendix C: variation by noise and targets",
        "How far systems of equal settings differ by the draw of noise and of target voices.",
    ),
)

_OF_SYSTEMS = (
    _of_worst_cases(
        "wcd-table3",
        "Table 3: EER and four worst cases of a set of systems",
        "The largest log-likelihood ratio of a single score or rank by PAV, Gaussians, t distributions and"
        " ranks, beside the EER: systems of equal EER differ by a factor of several in their worst case.",
    ),
    _of_worst_cases(
        "wcd-fig3",
        "Figure 3: scores and likelihood ratios of one system",
        "Both score distributions of a system and the log-likelihood ratio that each estimator reads there.",
        scores=True,
    ),
)

_RANKS = (
    _simulated(
        "srd-fig1",
        "Figure 1: a typical and an ideal rank histogram",
        "How often the right speaker comes out at each rank: a typical system concentrates at the first"
        " ranks, an ideal one is flat at 1/N.",
    ),
    _of_ranks(
        "srd-fig2",
        "Figure 2: embeddings, attackers trained on original speech",
        "Rank histograms of attackers that were never retrained: what anonymization keeps from an attacker"
        " who does not know it.",
    ),
    Item(
        "srd-fig3",
        "Figure 3: histograms of F0 and of phones",
        "Rank histograms of attackers that hear only how often each pitch, or each sound, occurs.",
        "systems",
        "rank_disclosure",
        _EVERY_ATTACKER,
    ),
    _of_ranks(
        "srd-fig4",
        "Figure 4: semi-informed attackers",
        "Rank histograms of attackers trained on speech of the attacked system.",
        given=True,
    ),
    _of_ranks(
        "srd-table",
        "Table: disclosure by similarity rank",
        "Maximum, mean, identification rate, spread and EER of every system, from the histogram itself and"
        " from the beta-binomial fit.",
        given=True,
    ),
)

#: All items, in the order of the papers.
ITEMS: dict[str, Item] = {item.name: item for item in (*_ANONYMIZATION, *_WORST_CASE, *_OF_SYSTEMS, *_RANKS)}


def item_named(name: str) -> Item:
    """Return an item.

    Raises:
        InputError: There is none of this name.
    """
    if name not in ITEMS:
        raise InputError(f"no item {name!r} to reproduce; there is: {', '.join(ITEMS)}")
    return ITEMS[name]


def maker(item: Item) -> Callable[[Path, Options], Result]:
    """Return the function that makes an item; its module is imported only now."""
    module = importlib.import_module(f"voxveil.research.papers.{item.module}")
    found: Callable[[Path, Options], Result] = module.MAKERS[item.name]
    return found
