"""Spoken words with their times, as subtitles (SubRip) and as JSON.

Times are those of the anonymized speech. They follow from the words, so they tell nothing more.
"""

from __future__ import annotations

import json
from collections.abc import Iterator

from voxveil.audio.frames import SAMPLE_RATE
from voxveil.pretrained.kinds import SpokenWords

__all__ = ["WRITERS", "json_text", "srt_text"]

#: Most letters of a subtitle, and the longest pause within one in samples.
_MOST_LETTERS, _LONGEST_PAUSE = 60, SAMPLE_RATE // 5


def json_text(spoken: SpokenWords) -> str:
    """Return the words with start and end in seconds as JSON."""
    rows = [
        {"word": word, "start": int(start) / SAMPLE_RATE, "end": int(end) / SAMPLE_RATE}
        for word, (start, end) in zip(spoken.words, spoken.spans, strict=True)
    ]
    seconds = len(spoken.audio) / SAMPLE_RATE
    return json.dumps({"format": 1, "seconds": seconds, "words": rows}, ensure_ascii=False, indent=1) + "\n"


def srt_text(spoken: SpokenWords) -> str:
    """Return subtitles of up to 60 letters, cut at pauses."""
    blocks = []
    for number, (first, last) in enumerate(_lines(spoken), 1):
        start, end = (_clock(int(sample)) for sample in (spoken.spans[first][0], spoken.spans[last - 1][1]))
        blocks.append(f"{number}\n{start} --> {end}\n{' '.join(spoken.words[first:last])}\n")
    return "\n".join(blocks)


#: What ``--write`` can add beside an output, by suffix.
WRITERS = {"srt": srt_text, "json": json_text}


def _lines(spoken: SpokenWords) -> Iterator[tuple[int, int]]:
    first = letters = 0
    for index, word in enumerate(spoken.words):
        pause = int(spoken.spans[index][0] - spoken.spans[index - 1][1]) if index > first else 0
        if index > first and (letters + len(word) > _MOST_LETTERS or pause > _LONGEST_PAUSE):
            yield first, index
            first, letters = index, 0
        letters += len(word) + 1
    if spoken.words:
        yield first, len(spoken.words)


def _clock(sample: int) -> str:
    millis = sample * 1000 // SAMPLE_RATE
    seconds, millis = divmod(millis, 1000)
    return f"{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02},{millis:03}"
