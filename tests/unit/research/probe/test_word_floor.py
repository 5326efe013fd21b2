"""``voxveil probe words``: table, files and figure, and what figure 5 shows of them."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest

from voxveil.cli.main import main
from voxveil.privacy.word_language import read_language
from voxveil.research.probe.word_floor import read_floor, read_texts
from voxveil.runtime.errors import InputError

PUBLIC = ["the cat sat", "the dog sat", "a cat ran home", "the cat ran", "a dog sat home"]


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    for subset, texts in (("public", PUBLIC), ("tested", ["the dog ran home", "a cat sat", "the zebra sat"])):
        chapter = tmp_path / subset / "1" / "2"
        chapter.mkdir(parents=True)
        lines = [f"1-2-{n:04d} {text.upper()}\n" for n, text in enumerate(texts)]
        (chapter / "1-2.trans.txt").write_text("".join(lines))
    return tmp_path


def command(corpus: Path, out: Path, *more: str) -> list[str]:
    common = ["--general", "none", "--longest", "5", "--drawn", "600", "--epsilon", "4", "8", "12"]
    return ["probe", "words", "--tested", str(corpus / "tested"), "--out", str(out), *common, *more]


def test_the_command_writes_language_table_and_figure(
    corpus: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("matplotlib")
    out = corpus / "words"
    assert main(command(corpus, out, "--text", str(corpus / "public"))) == 0
    assert {path.name for path in out.iterdir()} == {"language.npz", "words.json", "floor.png"}
    text = capsys.readouterr().out
    assert "a theorem, confidence 0.95" in text and "the floor is an estimate; 4 % recognition errors" in text
    found = read_floor(out)
    assert found is not None and found["language"]["sentences"] == len(PUBLIC)
    assert found["sets"]["text"]["in_vocabulary"] == 2 and found["sets"]["text"]["sentences"] == 3
    language = read_language(out / "language.npz")
    assert language.digest == found["language"]["digest"] and "zebra" not in language.words
    for name, part in found["sets"].items():
        for row, most, least in zip(
            part["resampled"], part["floor"]["exact"], part["floor"]["errors"], strict=True
        ):
            if name == "drawn":
                # The floor holds with its confidence; the mechanism is one of those that it is about.
                assert row["exact"] <= 100 * most + 3 and row["errors"] >= least - 3
        assert part["floor"]["errors"] == sorted(part["floor"]["errors"], reverse=True)
        assert part["floor"]["exact"] == sorted(part["floor"]["exact"])
    # The language of that run gives the same results again.
    again = corpus / "again"
    assert main(command(corpus, again, "--language", str(out / "language.npz"))) == 0
    repeated = read_floor(again)
    assert repeated is not None and repeated["sets"] == found["sets"]


def test_tested_sentences_are_left_out_of_the_text(corpus: Path) -> None:
    pytest.importorskip("matplotlib")
    out = corpus / "words"
    paths = [str(corpus / "public"), str(corpus / "tested")]
    assert main(command(corpus, out, "--text", *paths)) == 0
    found = read_floor(out)
    assert found is not None and found["language"]["sentences"] == len(PUBLIC)


def test_what_is_missing_is_named(corpus: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(InputError, match="nowhere: no transcripts"):
        read_texts([corpus / "nowhere"])
    file = corpus / "text"
    file.write_text("a first words\nb\n")
    assert read_texts([file]) == ["first words", ""]
    assert read_floor(corpus) is None
    for content in ({"format": 2}, {"format": 1, "sets": {"drawn": {}}}, {"format": 1, "sets": 1}, []):
        (corpus / "words.json").write_text(json.dumps(content))
        with pytest.raises(InputError, match="not results of 'voxveil probe words'"):
            read_floor(corpus)
    few = ["--text", str(corpus / "public"), "--alpha", "0.001"]
    assert main(command(corpus, corpus / "out", *few)) == 2
    assert f"--epsilon must be at least ln(1 / alpha) = {math.log(1000):.3g}" in capsys.readouterr().err
    assert not (corpus / "out").exists()
