"""A speaker id was a fixed count of characters, or the wrong part of a name; speakers merged.

Seen in https://github.com/MontrealCorpusTools/PolyglotDB/issues/120,
https://github.com/MontrealCorpusTools/Montreal-Forced-Aligner/issues/217 and
https://github.com/kaldi-asr/kaldi/issues/917.
"""

from __future__ import annotations

from pathlib import Path

import soundfile

from made_corpora import vowel
from voxveil.corpus.librispeech import read_librispeech, read_speakers, speaker_of

IDS = {"61-70968-0000": "61", "6-170968-0000": "6", "6170-968-0000": "6170"}
#: The third name holds the separator of the table, as in the published one.
TABLE = (
    ";ID  |SEX| SUBSET           |MINUTES| NAME\n"
    "61   | M | test-clean       | 8.08  | Mark Nelson\n"
    "6    | F | test-clean       | 8.08  | Kara Shallenberg\n"
    "6170 | F | test-clean       | 8.08  | |CBW|Simon | the second\n"
)


def test_speakers_stay_apart() -> None:
    assert {item: speaker_of(item) for item in IDS} == IDS


def test_a_name_may_hold_the_separator(tmp_path: Path) -> None:
    (tmp_path / "SPEAKERS.TXT").write_text(TABLE)
    assert read_speakers(tmp_path / "SPEAKERS.TXT") == {"61": "M", "6": "F", "6170": "F"}


def test_a_corpus_keeps_them_apart(tmp_path: Path) -> None:
    (tmp_path / "SPEAKERS.TXT").write_text(TABLE)
    for item in IDS:
        speaker, chapter, _ = item.split("-")
        path = tmp_path / "test-clean" / speaker / chapter / f"{item}.flac"
        path.parent.mkdir(parents=True)
        soundfile.write(path, vowel(4000), 16_000)
    clips = read_librispeech(tmp_path).clips
    assert {clip.id: clip.speaker for clip in clips} == IDS
    assert {clip.speaker: clip.sex for clip in clips} == {"61": "M", "6": "F", "6170": "F"}
