"""The page: whole in one file, honest in words, and without anything private."""

from __future__ import annotations

import base64
import copy
import hashlib
import json
import re
from pathlib import Path

import pytest

from made_pages import Reader
from voxveil.results.html import STYLE
from voxveil.results.report.page import Picture, page
from voxveil.results.report.players import players, read_pairs
from voxveil.results.report.published import VPC2024
from voxveil.runtime.errors import IncompleteInputError, PrivacyError

PICTURES = {name: Picture(b"light", b"dark") for name in ("privacy_utility", "rank_histogram")}


@pytest.fixture(scope="module")
def html(summaries, evaluated: Path) -> str:
    pairs = [
        pair
        for summary in summaries
        for pair in read_pairs(
            evaluated / "outputs/samples" / summary["system"], summary["system"], summary["kind"]
        )
    ]
    return page("A <title>", summaries, PICTURES, pairs, {})


def test_it_is_well_formed_and_escaped(html: str) -> None:
    found = Reader(html)
    assert ("html", {"lang": "en"}) in found.tags
    assert "A <title>" in found.text
    assert html.endswith("</html>\n")
    assert all("alt" in attrs for tag, attrs in found.tags if tag == "img")
    assert all("aria-label" in attrs for tag, attrs in found.tags if tag == "audio")


def test_it_needs_no_network_and_runs_no_script(html: str) -> None:
    found = Reader(html)
    assert not {"script", "iframe", "object"} & {tag for tag, _ in found.tags}
    for _, attrs in found.tags:
        for name in ("src", "srcset", "href"):
            assert attrs.get(name, "data:").startswith("data:")
    assert "url(" not in STYLE
    assert "@import" not in STYLE
    (policy,) = [a["content"] for t, a in found.tags if a.get("http-equiv") == "Content-Security-Policy"]
    digest = base64.b64encode(hashlib.sha256(STYLE.encode()).digest()).decode()
    assert policy == f"default-src 'none'; style-src 'sha256-{digest}'; img-src data:; media-src data:"
    assert not [attrs for _, attrs in found.tags if "style" in attrs]


def test_it_says_what_a_reader_must_know(html: str, summaries) -> None:
    text = " ".join(" ".join(Reader(html).text).split())
    for words in (
        "An EER of 50 % is not perfect privacy",
        "synthetic (espeak-ng)",
        "say nothing about real voices",
        "extractor and synthesis share 32 speakers",
        "if nothing leaks",
        "exceeds ln of the number of people alive",
        "8 speakers, 48 utterances",
        "20 bootstrap draws of speakers",
        "data revision " + "0f" * 32,
    ):
        assert words in text
    for summary in summaries:
        assert summary["system"] in text
    for system in VPC2024:
        assert system.name in text


def test_every_measured_row_names_attacker_and_states(html: str, summaries) -> None:
    table = html[html.index("Measured, with") : html.index("Worst case of")]
    rows = re.findall(r'<tr><th scope="row">(.*?)</th>(.*?)</tr>', table)
    assert [name for name, _ in rows] == [s["system"] for s in summaries]
    for name, cells in rows:
        state = "original" if name == "original" else "anonymized"
        assert "ecapa, semi-informed" in cells
        assert f"{state} → {state}" in cells


def test_both_pictures_come_in_light_and_dark(html: str) -> None:
    light, dark = (base64.b64encode(data).decode() for data in (b"light", b"dark"))
    assert html.count(f'class="light" src="data:image/png;base64,{light}"') == 2
    assert html.count(f'class="dark" src="data:image/png;base64,{dark}"') == 2
    assert "figure img.dark { display: none; }" in STYLE


def test_players_hold_each_original_once(html: str, evaluated: Path) -> None:
    folder = evaluated / "outputs/samples/anon"
    (row,) = json.loads((folder / "samples.json").read_text())["utterances"]
    original = base64.b64encode((folder / row["original"]).read_bytes()).decode()
    assert html.count(original) == 1
    assert html.count("<audio ") == 3


def test_equal_results_give_an_equal_page(html: str, summaries, evaluated: Path) -> None:
    again = page("A <title>", copy.deepcopy(summaries), PICTURES, [], {})
    assert again == page("A <title>", summaries, PICTURES, [], {})
    assert again != html


def test_a_warning_is_shown_with_its_figures(summaries) -> None:
    changed = copy.deepcopy(summaries)
    for summary in changed:
        summary["attacks"][0]["warnings"] = []
    assert "<h3>Warnings</h3><p>None.</p>" in page("t", changed, PICTURES, [], {})
    text = "scores may be reversed: EER is 80.0 %"
    changed[1]["attacks"][0]["warnings"] = [{"code": "scores_reversed", "text": text}]
    html = page("t", changed, PICTURES, [], {})
    assert f"<li><b>anon</b>: {text}</li>" in html


def test_speech_of_a_corpus_not_declared_public_is_refused(evaluated: Path, tmp_path: Path) -> None:
    source = evaluated / "outputs/samples/anon/samples.json"
    content = json.loads(source.read_text())
    for public in (False, None, "true"):
        content["corpus"]["public"] = public
        (tmp_path / "samples.json").write_text(json.dumps(content))
        with pytest.raises(PrivacyError, match="not declared public"):
            read_pairs(tmp_path, "anon", "anonymized")
    content["utterances"] = []
    (tmp_path / "samples.json").write_text(json.dumps(content))
    assert read_pairs(tmp_path, "anon", "anonymized") == []
    (tmp_path / "samples.json").write_text("[]")
    with pytest.raises(IncompleteInputError, match="not a list of samples"):
        read_pairs(tmp_path, "anon", "anonymized")


def test_a_private_corpus_shows_no_players(summaries) -> None:
    changed = copy.deepcopy(summaries)
    for summary in changed:
        summary["corpus"].update(public=False, synthetic=False, name="private corpus")
    html = page("t", changed, PICTURES, [], {})
    assert "not declared public, so no speech is shown" in html
    assert "<audio" not in html
    assert "say nothing about real voices" not in html
    assert players([]) == ""


def test_naturalness_and_outliers_are_shown(summaries) -> None:
    changed = copy.deepcopy(summaries)
    utility = changed[1]["utility"]
    utility["naturalness"] = {"distillmos": {"value": 3.21, "ci95": [3.0, 3.4], "unit": "MOS"}}
    utility["outliers"] = {"words": [], "distillmos": ["a<b", *(f"u{n}" for n in range(7))]}
    changed[2]["utility"]["outliers"] = {"words": 4}
    text = page("A <title>", changed, PICTURES, [], {})
    assert "Naturalness <small>MOS by distillmos</small>" in text and "3.21" in text
    assert "0 in words; 8 in distillmos: a&lt;b, u0, u1, u2, u3, ..." in text
    assert "<dd>4 in words</dd>" in text
    assert "Naturalness" not in page("A <title>", summaries, PICTURES, [], {})
