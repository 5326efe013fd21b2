"""An empty reference or hypothesis crashed, or was dropped from the word error rate.

Seen in https://github.com/jitsi/jiwer/issues/98 and https://github.com/speechbrain/speechbrain/issues/1917.
"""

from __future__ import annotations

from voxveil.utility.edits import count_edits, error_rate, total
from voxveil.utility.transcripts import normalize_words

PAIRS = {"u1": ("", ""), "u2": ("", "a b"), "u3": ("a b", "")}


def test_nothing_is_skipped() -> None:
    edits = {
        name: count_edits(normalize_words(said), normalize_words(heard))
        for name, (said, heard) in PAIRS.items()
    }
    assert edits["u1"].errors == 0
    assert (edits["u2"].insertions, edits["u2"].errors) == (2, 2)
    assert (edits["u3"].deletions, edits["u3"].errors) == (2, 2)
    whole = total(edits.values())
    assert (whole.errors, whole.reference) == (4, 2)
    assert whole.rate == 200
    rate = error_rate(edits, {"u1": "s1", "u2": "s1", "u3": "s2"}, replicates=20, seed=1)
    assert (rate.value, rate.utterances) == (200, 3)


def test_without_any_reference_there_is_no_rate() -> None:
    rate = error_rate({"u1": count_edits([], ["a"])}, {"u1": "s1"}, replicates=20, seed=1)
    assert rate.value is None
    assert rate.reason
