"""Normalization of transcripts before reference and hypothesis are compared."""

from __future__ import annotations

import re
import unicodedata

__all__ = ["NORMALIZATION", "normalize_words"]

#: What is done to both sides before they are compared.
NORMALIZATION = "NFKC, lower case, punctuation removed, apostrophes inside words kept; both sides alike"

_APOSTROPHES = str.maketrans({"\u2018": "'", "\u2019": "'", "\u02bc": "'", "`": "'"})
_NOT_WORD = re.compile(r"[^\w']|_")


def normalize_words(text: str) -> list[str]:
    """Return the words of a transcript: lower case, no punctuation, apostrophes inside words kept.

    Both sides of an error rate go through here: ``HELLO, World.`` equals ``hello world``.

    Args:
        text: A transcript, maybe empty.
    """
    folded = unicodedata.normalize("NFKC", text).casefold().translate(_APOSTROPHES)
    words = (word.strip("'") for word in _NOT_WORD.sub(" ", folded).split())
    return [word for word in words if word]
