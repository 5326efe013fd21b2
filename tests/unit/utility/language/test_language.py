from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from voxveil.corpus.split import Utterance
from voxveil.runtime.errors import InputError
from voxveil.utility.language.estimation import kneser_ney
from voxveil.utility.language.lexicon import read_dictionary, word_lexicon
from voxveil.utility.language.ngrams import BEGIN, END, restricted, with_backoffs
from voxveil.utility.language.sphinx_language import read_trie, sphinx_dictionary_path, sphinx_language_model
from voxveil.utility.language.word_model import LanguageKnobs, language_model, training_sentences, vocabulary


def said(item: str, speaker: str, text: str) -> Utterance:
    return Utterance(item, speaker, "F", 16_000, text)


TRAINING = [
    said("1", "anna", "The old house"),
    said("2", "anna", "A NEW house."),
    said("3", "ben", "the end"),
    said("4", "ben", ""),
]


def test_no_test_transcript_is_learnt_from() -> None:
    tested = [said("9", "carl", "a new HOUSE"), said("8", "carl", "something else")]
    sentences = training_sentences(TRAINING, tested)
    assert sentences == (("the", "old", "house"), ("the", "end"))


def test_a_speaker_in_both_is_refused() -> None:
    with pytest.raises(InputError, match="speaker ben is both in training and in the test"):
        training_sentences(TRAINING, [said("9", "ben", "anything")])
    with pytest.raises(InputError, match="no training transcript"):
        training_sentences(TRAINING[2:], [said("9", "carl", "The end.")])


def test_vocabulary_is_the_commonest_words_and_the_sentences_own() -> None:
    words = ("a", "b", "c", "d", END, BEGIN)
    general = with_backoffs(words, [np.arange(6)[:, None]], [np.log([0.1, 0.4, 0.3, 0.05, 0.15, 0.01])])
    assert vocabulary(general, [["x", "d"]], 2, {"a", "c", "d"}) == ("a", "c", "d", "x")


def test_language_model_mixes_and_prunes() -> None:
    sentences = [["a", "b", "x"], ["a", "b", "c"]]
    general = kneser_ney([["a", "c", "b"], ["c", "b", "d"]], ["a", "b", "c", "d"], 3)
    words = ("a", "b", "c", "x")
    whole = language_model(general, sentences, words, LanguageKnobs(order=3, share=0.5, prune=0.0))
    less = language_model(general, sentences, words, LanguageKnobs(order=2, share=0.5, prune=1e-2))
    assert whole.words == tuple(sorted((*words, BEGIN, END))) == less.words
    assert whole.order == 3 and less.order == 2
    assert len(less.grams[1]) < len(whole.grams[1])
    # Only the sentences know "a b"; the general model gives it what backing off leaves.
    row = np.array([[whole.words.index("a"), whole.words.index("b")]])
    own = kneser_ney(sentences, words, 3).log_prob(row)
    other = restricted(general, words).log_prob(row)
    assert np.exp(whole.log_prob(row)) == pytest.approx(0.5 * np.exp(own) + 0.5 * np.exp(other))


def test_dictionary_has_further_pronunciations(tmp_path: Path) -> None:
    path = tmp_path / "words.dict"
    path.write_text("read R IY D\nread(2) R EH D\nbookcase B UH K K EY S\n(paren P ER EH N\n")
    found = read_dictionary(path)
    assert found["read"] == (("R", "IY", "D"), ("R", "EH", "D"))
    assert found["bookcase"] == (("B", "UH", "K", "EY", "S"),)
    assert found["(paren"] == (("P", "ER", "EH", "N"),)
    path.write_text("read R IY D\nodd R QQ\n")
    with pytest.raises(InputError, match=r"words\.dict:2: must be 'WORD PHONE \.\.\.'"):
        read_dictionary(path)


def test_words_outside_the_dictionary_are_spoken_by_espeak() -> None:
    pytest.importorskip("espeakng_loader")
    found = word_lexicon(["cat", "voxveil"], {"cat": (("K", "AE", "T"),), "dog": (("D", "AO", "G"),)})
    assert list(found) == ["cat", "voxveil"]
    assert found["cat"] == (("K", "AE", "T"),)
    assert found["voxveil"] == (("V", "AA", "K", "S", "V", "EY", "L"),)


def test_packaged_dictionary_is_readable() -> None:
    pytest.importorskip("pocketsphinx")
    found = read_dictionary(sphinx_dictionary_path())
    assert len(found) > 120_000
    assert found["speech"] == (("S", "P", "IY", "CH"),)


def test_packaged_trigram_says_what_pocketsphinx_says() -> None:
    pocketsphinx = pytest.importorskip("pocketsphinx")
    model = sphinx_language_model()
    assert [len(rows) for rows in model.grams][0] == 72_547
    theirs = pocketsphinx.NGramModel.readfile(pocketsphinx.get_model_path("en-us/en-us.lm.bin"))
    to_nats = np.log(1.0001)
    rng = np.random.default_rng(1)
    begin = model.words.index(BEGIN)
    for rows in model.grams:
        rows = rows[rng.choice(len(rows), 200, replace=False)]
        rows = rows[(rows[:, 1:] != begin).all(axis=1) & (rows[:, -1] != begin)]
        # PocketSphinx wants the newest word first, and counts in whole steps of 1.0001.
        expected = [theirs.prob([model.words[i] for i in row[::-1]]) * to_nats for row in rows]
        assert model.log_prob(rows) == pytest.approx(np.array(expected), abs=0.002)


def test_another_file_is_no_trigram(tmp_path: Path) -> None:
    path = tmp_path / "lm.bin"
    path.write_bytes(b"Trie Language Model\x02" + bytes(100))
    with pytest.raises(InputError, match="not a binary trigram of PocketSphinx"):
        read_trie(path)
