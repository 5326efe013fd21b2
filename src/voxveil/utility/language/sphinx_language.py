"""Reader of the binary English trigram in PocketSphinx's package.

The library itself writes such a model back as ARPA only up to order 2. Layout, little-endian (lm_trie.c):
``Trie Language Model``, the order (1 byte), the number of n-grams of each length (4 bytes each), a
type (4 bytes), tables of the 16-bit codes for probabilities and back-off weights, the 1-grams
(probability, weight, first longer n-gram), bit-packed longer n-grams, and the words with a zero after
each. The trie is reversed: what follows a 1-gram is the word *before* it. Logarithms have base 1.0001.
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from voxveil.audio.sphinx import pocketsphinx_module
from voxveil.runtime.errors import InputError
from voxveil.utility.language.ngrams import NGramModel, with_backoffs

__all__ = ["read_trie", "sphinx_dictionary_path", "sphinx_language_model"]

_MAGIC = b"Trie Language Model"
_CODES = 1 << 16
_LOG_BASE = math.log(1.0001)


def sphinx_dictionary_path() -> Path:
    """Return the pronunciation dictionary in PocketSphinx's package."""
    return Path(pocketsphinx_module().get_model_path("en-us/cmudict-en-us.dict"))


def sphinx_language_model() -> NGramModel:
    """Return the general English trigram of PocketSphinx's package (72 547 words)."""
    return read_trie(Path(pocketsphinx_module().get_model_path("en-us/en-us.lm.bin")))


def read_trie(path: Path) -> NGramModel:
    """Read a binary trigram of PocketSphinx.

    Raises:
        InputError: Not such a file.
    """
    data = path.read_bytes()
    start = len(_MAGIC)
    if not data.startswith(_MAGIC) or data[start] != 3:
        raise InputError(f"{path}: not a binary trigram of PocketSphinx")
    counts = np.frombuffer(data, "<u4", 3, start + 1).astype(np.int64)
    tables = np.frombuffer(data, "<f4", 3 * _CODES, start + 17).astype(np.float64).reshape(3, _CODES)
    offset = start + 17 + tables.size * 4
    kind = np.dtype([("p", "<f4"), ("b", "<f4"), ("next", "<u4")])
    unigrams = np.frombuffer(data, kind, counts[0] + 1, offset)
    offset += unigrams.nbytes
    word_bits, next_bits = int(counts[0]).bit_length(), int(counts[2]).bit_length()
    widths = (word_bits + 32 + next_bits, word_bits + 16)
    sizes = [((1 + int(n)) * width + 7) // 8 + 8 for n, width in zip(counts[1:], widths, strict=True)]
    # Each bigram row: the word before, the code of its weight, that of its probability, its first trigram.
    pairs = _fields(data[offset : offset + sizes[0]], int(counts[1]) + 1, (word_bits, 16, 16, next_bits))
    offset += sizes[0]
    triples = _fields(data[offset : offset + sizes[1]], int(counts[2]), (word_bits, 16))
    offset += sizes[1] + 4
    words = tuple(data[offset:].decode("utf-8").split("\0")[:-1])
    if len(words) != counts[0]:
        raise InputError(f"{path}: {len(words)} words, its head says {counts[0]}")
    # The head counts a few n-grams too many, which the trie does not hold.
    firsts = unigrams["next"].astype(np.int64)
    last = np.repeat(np.arange(counts[0]), firsts[1:] - firsts[:-1])
    held = len(last)
    firsts = pairs[3][: held + 1]
    parents = np.repeat(np.arange(held), firsts[1:] - firsts[:-1])
    if held > counts[1] or len(parents) != counts[2]:
        raise InputError(f"{path}: the n-grams do not add up to what its head says")
    grams = [
        np.arange(counts[0])[:, None],
        np.stack([pairs[0][:held], last], axis=1),
        np.stack([triples[0], pairs[0][parents], last[parents]], axis=1),
    ]
    codes = (tables[0][pairs[2][:held]], tables[2][triples[1]])
    log_p = [logs * _LOG_BASE for logs in (unigrams["p"][:-1].astype(np.float64), *codes)]
    return with_backoffs(words, grams, log_p)


def _fields(data: bytes, count: int, widths: tuple[int, ...]) -> list[NDArray[np.int64]]:
    """Return bit fields of ``count`` rows, lowest bits first."""
    if len(data) < 8:
        raise InputError("a binary language model ends too early")
    eights: NDArray[Any] = np.ndarray((len(data) - 7,), "<u8", data, 0, (1,))
    starts = np.arange(count, dtype=np.int64) * sum(widths)
    fields = []
    for width in widths:
        values = eights[starts >> 3] >> (starts & 7).astype(np.uint64)
        fields.append((values & np.uint64((1 << width) - 1)).astype(np.int64))
        starts = starts + width
    return fields
