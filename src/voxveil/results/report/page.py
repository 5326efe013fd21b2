"""The results page of a run, one self-contained HTML file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

from voxveil import __version__
from voxveil.metrics.evidence import WARNING_CODES
from voxveil.results.html import Picture, document, figure_html, terms_html
from voxveil.results.report.page_tables import (
    conditions_table,
    independent_text,
    measured_table,
    promise_table,
    published_table,
    sexes_table,
    worst_table,
)
from voxveil.results.report.players import Pair, players
from voxveil.results.report.published import DP_EXTRACTORS
from voxveil.results.report.results import Summary, attacks, headline, same_corpus, warnings_by_code
from voxveil.results.report.utility import utility_section
from voxveil.results.wording import (
    EER_NOTE,
    INTERVAL_NOTE,
    NULL_NOTE,
    SYNTHETIC_NOTE,
    conditions,
    value_text,
    who_attacks,
)

__all__ = ["Picture", "page"]


def page(
    title: str,
    summaries: Sequence[Summary],
    pictures: Mapping[str, Picture],
    pairs: Sequence[Pair],
    spectra: Mapping[str, Picture],
) -> str:
    """Return the page.

    Args:
        title: Its heading.
        summaries: ``summary.json`` of each system.
        pictures: ``rank_histogram`` and ``privacy_utility``.
        pairs: Public utterances before and after each system.
        spectra: Spectrograms by utterance.
    """
    corpus = same_corpus(summaries)
    body = "\n".join(
        [
            _opening(title, summaries, corpus),
            _promised(summaries),
            _measured(summaries),
            utility_section(summaries),
            _figures(summaries, pictures),
            _listen(pairs, corpus, spectra),
            _beside(summaries, corpus),
            _method(summaries, corpus),
        ]
    )
    return document(title, body)


def _opening(title: str, summaries: Sequence[Summary], corpus: Mapping[str, Any]) -> str:
    facts = [
        f"corpus: {corpus['name']}{', synthetic' if corpus['synthetic'] else ''}",
        f"data revision {corpus['revision'][:12]}",
        f"scale {summaries[0]['scale']}",
        f"{len(summaries)} systems",
    ]
    note = (
        f'<div class="note"><p><b>Synthetic speech.</b> {SYNTHETIC_NOTE}</p></div>'
        if corpus["synthetic"]
        else ""
    )
    return (
        f'<header><h1>{escape(title)}</h1>\n<p class="lead">What each system promises, what an attacker who'
        " knows the system still finds, and what is left of the speech.</p>\n"
        f'<ul class="facts">{"".join(f"<li>{escape(fact)}</li>" for fact in facts)}</ul>\n{note}</header>'
    )


def _promised(summaries: Sequence[Summary]) -> str:
    return (
        "<section><h2>What was promised</h2>\n"
        "<p>ε bounds what anybody can learn from released speech, whatever they know: it is the largest"
        " logarithm, in nat, of the ratio between the probabilities of one release under two utterances of"
        " equal length. ε per vector covers one released 10 ms vector, and an utterance releases as many as"
        " it has; ε of an utterance adds all of it up. ∞ is no promise. Training on public speech promises"
        " nothing to the people in it.</p>\n"
        f"{promise_table(summaries)}</section>"
    )


def _measured(summaries: Sequence[Summary]) -> str:
    return (
        "<section><h2>What was measured</h2>\n"
        f'<div class="note"><p>{EER_NOTE}</p><p>{NULL_NOTE}</p></div>\n'
        f"{measured_table(summaries)}\n{worst_table(summaries)}\n"
        f"<p>{INTERVAL_NOTE} Unlinkability is 1 - D_sys;"
        " ZEBRA expected disclosure is full at 0.721 bit; identified is the share of inputs whose own speaker"
        f" ranks first. {_baseline(summaries)}</p>\n"
        f"{_warnings(summaries)}\n{sexes_table(summaries)}\n{independent_text(summaries)}\n"
        f"{conditions_table(summaries)}</section>"
    )


def _baseline(summaries: Sequence[Summary]) -> str:
    """Return how to read the rows beside the attacks on original speech of the same corpus."""
    if any(summary["kind"] == "original" for summary in summaries):
        return (
            "The rows of original speech are what each attacker reads on this corpus without anonymization:"
            " compare with them, not with another corpus."
        )
    return (
        "No system passes original speech through, so how well each attacker does on this corpus without"
        " anonymization is not known, and a high error rate may show a weak attacker."
    )


def _warnings(summaries: Sequence[Summary]) -> str:
    found = warnings_by_code(summaries)
    if not found:
        return "<h3>Warnings</h3><p>None.</p>"
    parts = []
    for code, warned in found.items():
        lines = [f"<li><b>{escape(system)}</b>: {escape(text)}</li>" for system, text in warned]
        title = escape(WARNING_CODES[code][:1].upper() + WARNING_CODES[code][1:])
        parts.append(f"<p>⚠ {title}:</p><ul>{''.join(lines)}</ul>")
    return f'<h3>Warnings</h3>\n<div class="note">{"".join(parts)}</div>'


def _figures(summaries: Sequence[Summary], pictures: Mapping[str, Picture]) -> str:
    captions = {
        "privacy_utility": (
            "Privacy against utility, with 95 % intervals over speakers, by the strongest semi-informed"
            " attacker of each system, in brackets. The dashed line is chance, the band what is read if"
            " nothing leaks."
        ),
        "rank_histogram": (
            "How often the right speaker came out at each rank, among N references, by the same attackers."
            " Flat at the dashed line is chance; a high first bar is identification."
        ),
    }
    parts = [
        figure_html(pictures[name], escape(_spoken(name, summaries), quote=True), caption)
        for name, caption in captions.items()
    ]
    return "<section><h2>Figures</h2>\n" + "\n".join(parts) + "</section>"


def _spoken(name: str, summaries: Sequence[Summary]) -> str:
    """Return a figure's numbers in words, for those who cannot see it."""
    lines = []
    for summary in summaries:
        metrics = headline(summary)["metrics"]
        who = who_attacks(headline(summary))
        text = f"{summary['system']} ({who}): {value_text(metrics['identification_rate'])} % identified"
        if name == "privacy_utility":
            eer, per = value_text(metrics["eer"]), value_text(summary["utility"]["per"])
            text += f", EER {eer} %, phone error rate {per} %"
        lines.append(text)
    return "; ".join(lines)


def _listen(pairs: Sequence[Pair], corpus: Mapping[str, Any], spectra: Mapping[str, Picture]) -> str:
    if not pairs:
        why = "" if corpus["public"] else " The corpus is not declared public, so no speech is shown."
        return f'<section class="listen"><h2>Listen</h2><p>No samples.{why}</p></section>'
    drawn = "\n".join(
        figure_html(
            picture,
            escape(f"spectrograms of {utterance}, original and after every system", quote=True),
            f"Spectrograms of {escape(utterance)}: the original, then every system; white to black is 70 dB.",
        )
        for utterance, picture in spectra.items()
    )
    return (
        '<section class="listen"><h2>Listen</h2>\n<p>Utterances of the public corpus, before and after each'
        f" system.</p>\n{players(pairs)}\n{drawn}</section>"
    )


def _beside(summaries: Sequence[Summary], corpus: Mapping[str, Any]) -> str:
    other = "synthetic speech of few speakers" if corpus["synthetic"] else "another corpus"
    return (
        "<section><h2>Beside published values</h2>\n"
        "<p>Systems of the VoicePrivacy 2024 Challenge, measured on"
        f" LibriSpeech by a stronger attacker. This run is {other}: the columns show how estimators differ"
        " between systems of equal EER, not who is better.</p>\n"
        f"{published_table(summaries)}\n"
        "<p>Published for the DP extractors and not measured in this run:</p>\n"
        f"{terms_html(dict(DP_EXTRACTORS))}</section>"
    )


def _method(summaries: Sequence[Summary], corpus: Mapping[str, Any]) -> str:
    splits = "; ".join(
        f"{name} {facts['speakers']} speakers, {facts['utterances']} utterances"
        for name, facts in sorted(corpus["splits"].items())
    )
    shared = "; ".join(
        f"{' and '.join(item['lists'])} share {item['speakers']} speakers" for item in corpus["overlaps"]
    )
    attackers = "; ".join(dict.fromkeys(conditions(attack) for _, attack in attacks(summaries)))
    terms = {
        "Corpus": f"{corpus['name']}, {'synthetic' if corpus['synthetic'] else 'recorded'}, "
        f"{'public' if corpus['public'] else 'not public'}, data revision {corpus['revision']}",
        "Private side": splits,
        "Speaker lists": shared or "all lists are disjoint",
        "Left out": f"{corpus['skipped']} recordings that could not be used;"
        f" {corpus['speakers_without_voiced_frames']} speakers without voiced frames",
        "Recordings": ", ".join(f"{count} {flag}" for flag, count in sorted(corpus["flags"].items()))
        or "none was changed",
        "Attack": attackers,
        "Intervals": f"{summaries[0]['replicates']} bootstrap draws of speakers; as many relabellings for"
        " 'if nothing leaks'",
        "Phone errors": "phone error rate of this run's own recognizer on all released utterances",
    }
    return (
        f"<section><h2>How this was measured</h2>\n{terms_html(terms)}</section>\n"
        f"<footer>voxveil {__version__}. Every number, with its estimator, stands in"
        " outputs/evaluate/SYSTEM/.</footer>"
    )
