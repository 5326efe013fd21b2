"""``voxveil audit``: hold mechanisms and attacks against the epsilon that is claimed."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from voxveil.runtime.atomic import write_json
from voxveil.runtime.errors import InputError, PrivacyError

if TYPE_CHECKING:
    from voxveil.privacy.audit.mechanism_audit import Finding

__all__ = ["EPILOG", "HELP", "add_arguments", "run"]

HELP = "Audit the mechanisms from outside, or an attacker's scores, against the claimed epsilon."

EPILOG = """A lower confidence bound of epsilon is measured on released values of neighbouring inputs;
'violation' means the claim is refuted (a right mechanism is accused with probability 1e-4 a test),
'consistent' that it is not, 'not auditable' that so many releases cannot refute so large a claim.
A zCDP rho is held against the epsilon it gives at delta 0.01.
A claim above 10 nat is called vacuous against attackers: it excludes nothing they could show.

examples:
  voxveil audit mechanisms
  voxveil audit mechanisms --epsilon 1 --releases 100000 --json audit.json
  voxveil audit mechanisms --params params.yaml
  voxveil audit attack --scores scores.txt --trials trials.txt --ledger released/
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``voxveil audit``."""
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    mechanisms = actions.add_parser("mechanisms", help="the noise of every release, by a million releases")
    mechanisms.add_argument(
        "--epsilon", type=float, nargs="+", metavar="E", help="claims to audit (default: 0.5 1 10 100)"
    )
    mechanisms.add_argument(
        "--rho", type=float, nargs="+", metavar="R", help="zCDP claims of Gaussian noise (default: 0.1 1)"
    )
    mechanisms.add_argument("--params", type=Path, metavar="FILE", help="audit the claims of its variants")
    mechanisms.add_argument(
        "--releases", type=int, default=1_000_000, metavar="N", help="of each neighbour (%(default)s)"
    )
    attack = actions.add_parser("attack", help="scores of an attacker on released speech")
    attack.add_argument("--scores", type=Path, required=True, help="lines ENROLMENT UTTERANCE SCORE")
    attack.add_argument(
        "--trials", type=Path, required=True, help="lines ENROLMENT UTTERANCE target|nontarget"
    )
    attack.add_argument(
        "--ledger", type=Path, required=True, help="ledger.json, or the folder of the release"
    )
    for action in (mechanisms, attack):
        action.add_argument("--json", type=Path, metavar="FILE", help="also write the findings as JSON")


def run(args: argparse.Namespace) -> int:
    """Run the action; 0 unless a claim is refuted."""
    findings = _attack(args) if args.action == "attack" else _mechanisms(args)
    if args.json is not None:
        write_json(args.json, {"findings": findings})
    refuted = [finding for finding in findings if finding["verdict"] == "violation"]
    if refuted:
        first = refuted[0]["epsilon"]
        raise PrivacyError(
            f"{len(refuted)} of {len(findings)} tests refute a claim; the first is epsilon {first}"
        )
    return 0


def _mechanisms(args: argparse.Namespace) -> list[dict[str, Any]]:
    from voxveil.privacy import (
        GaussianSphere,
        LaplaceCube,
        LaplaceSimplex,
        RandomizedResponse,
        SubsetSelection,
    )
    from voxveil.privacy.audit.gaussian_audit import audit_sphere
    from voxveil.privacy.audit.mechanism_audit import audit_cube, audit_simplex
    from voxveil.privacy.audit.resampled_audit import audit_resampled, small_mechanism
    from voxveil.privacy.audit.response_audit import audit_response, audit_subset
    from voxveil.privacy.codes import LARGEST_EPSILON

    if args.params is not None and (args.epsilon is not None or args.rho is not None):
        raise InputError("--params FILE names the claims, so --epsilon and --rho are not allowed beside it")
    given = args.epsilon or (() if args.rho else (0.5, 1.0, 10.0, 100.0))
    # Above 32 a code is told as it is, which is no mechanism.
    rhos = args.rho or (() if args.epsilon else (0.1, 1.0))
    small = [claim for claim in given if claim <= LARGEST_EPSILON]
    claims = (
        {
            "response": small,
            "subset": small,
            "words": small,
            "content": given,
            "pitch": given,
            "gaussian": rhos,
        }
        if args.params is None
        else _claims(args.params)
    )
    count = args.releases
    audits: dict[str, Callable[[float], list[Finding]]] = {
        "response": lambda claim: audit_response(RandomizedResponse(claim), claim, releases=count),
        "subset": lambda claim: audit_subset(SubsetSelection(claim), claim, releases=count),
        "words": lambda claim: audit_resampled(small_mechanism(claim), claim, releases=count),
        "content": lambda claim: audit_simplex(LaplaceSimplex(claim), claim, releases=count),
        "pitch": lambda claim: audit_cube(LaplaceCube(claim), claim, releases=count),
        "gaussian": lambda claim: audit_sphere(GaussianSphere(claim), claim, releases=count),
    }
    return [
        _printed(finding.to_json())
        for kind, audit in audits.items()
        for claim in claims.get(kind, ())
        for finding in audit(claim)
    ]


def _printed(finding: dict[str, Any]) -> dict[str, Any]:
    print(
        f"{finding['mechanism']:19} epsilon {finding['epsilon']:<6g} {finding['verdict']:13}"
        f" {finding['test']}: {finding['detail']}",
        flush=True,
    )
    return finding


def _claims(path: Path) -> dict[str, list[float]]:
    from voxveil.config import load_params

    params = load_params(path)
    content, pitch = params.content_variants.values(), params.pitch_variants.values()

    def of(*mechanisms: str) -> list[float]:
        return sorted({variant.epsilon for variant in content if variant.mechanism in mechanisms})

    found = {
        "response": of("randomized_response"),
        "subset": of("subset_selection"),
        "content": of("laplace", "sharp_laplace"),
        "gaussian": sorted({variant.rho for variant in content if variant.mechanism == "gaussian"}),
        "pitch": sorted({variant.epsilon for variant in pitch if variant.mechanism != "identity"}),
    }
    if not any(found.values()):
        raise InputError(f"{path}: none of its variants adds noise, so there is no claim to audit")
    return found


def _attack(args: argparse.Namespace) -> list[dict[str, Any]]:
    from voxveil.metrics.score_files import read_scores, read_trials
    from voxveil.privacy.audit.attack_audit import Trial, audit_attack
    from voxveil.privacy.invariants import GIVEN_WORDS
    from voxveil.privacy.ledger import read_ledger, read_ledgers

    trials = read_trials(args.trials)
    order, scores = read_scores(args.scores, trials)
    releases = [read_ledger(args.ledger)] if args.ledger.is_file() else read_ledgers(args.ledger)
    entries = {entry.input: entry for release in releases for entry in release.entries}
    _require_entries(trials.utterances, set(entries), args.ledger)
    concentrated = next((name for name, entry in entries.items() if entry.utterance.rho is not None), None)
    if concentrated is not None:
        raise InputError(
            f"{args.ledger}: {concentrated} was released under zCDP, for which no pure epsilon holds;"
            " an attack is audited against a pure epsilon only"
        )
    conditional = next((name for name, entry in entries.items() if entry.utterance.conditional), None)
    if conditional is not None:
        raise InputError(
            f"{args.ledger}: {conditional} was released {GIVEN_WORDS}; trials of other words are not"
            " neighbours under that promise, so an attack cannot be held against it"
        )
    listed = [
        Trial(
            trials.enrolments[trials.enrolment[index]],
            trials.utterances[trials.utterance[index]],
            bool(trials.is_target[index]),
            float(score),
        )
        for index, score in zip(order, scores, strict=True)
    ]
    finding = audit_attack(
        listed,
        {name: entry.vectors for name, entry in entries.items()},
        {name: entry.utterance.epsilon for name, entry in entries.items()},
    )
    print(finding.text())
    return [finding.to_json()]


def _require_entries(utterances: Sequence[str], known: set[str], ledger: Path) -> None:
    missing = [name for name in utterances if name not in known]
    if missing:
        raise InputError(
            f"utterance {missing[0]}: no entry in {ledger} ({len(missing)} of {len(utterances)} have none)"
        )
