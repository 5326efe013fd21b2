"""Training, validation and test utterances of a speaker identification attack."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from voxveil.runtime.errors import InputError
from voxveil.runtime.seeding import stream

__all__ = ["MINIMUM_UTTERANCES", "AsiSplit", "split_utterances"]

#: Two to learn from, one to stop by, one to test on.
MINIMUM_UTTERANCES = 4
#: Share of a speaker's utterances in validation, and in test, at full size.
_SHARE = 0.1


@dataclass(frozen=True)
class AsiSplit:
    """A closed set: every speaker is in all three parts, no utterance in two.

    Attributes:
        training: Utterances by speaker, speakers sorted.
        validation: Likewise.
        test: Likewise.
        left_out: Speakers with too few utterances, not in the set.
    """

    training: Mapping[str, tuple[str, ...]]
    validation: Mapping[str, tuple[str, ...]]
    test: Mapping[str, tuple[str, ...]]
    left_out: int = 0

    @property
    def speakers(self) -> tuple[str, ...]:
        """The S speakers, in the order of the classes."""
        return tuple(self.training)

    def labelled(self, part: Mapping[str, tuple[str, ...]]) -> list[tuple[str, int]]:
        """Return (utterance, class) of each utterance of one part."""
        return [(item, index) for index, speaker in enumerate(self.speakers) for item in part[speaker]]


def split_utterances(
    utterances_by_speaker: Mapping[str, Sequence[str]], *, full: bool, seed: int
) -> AsiSplit:
    """Split the utterances of every speaker who has at least 4.

    Args:
        utterances_by_speaker: Utterance ids, all different.
        full: 80/10/10 % of every speaker (at least one in validation and test), as in the paper;
            otherwise one for validation, one for test, the rest for training (few utterances each).
        seed: The run's seed; the draw of a speaker depends on nothing else but the speaker.

    Raises:
        InputError: An utterance stands twice, or fewer than 2 speakers have enough utterances.
    """
    seen: dict[str, str] = {}
    parts: tuple[dict[str, tuple[str, ...]], ...] = ({}, {}, {})
    for speaker in sorted(utterances_by_speaker):
        items = sorted(utterances_by_speaker[speaker])
        for item in items:
            if item in seen:
                raise InputError(f"utterance {item}: stands twice ({seen[item]} and {speaker})")
            seen[item] = speaker
        if len(items) < MINIMUM_UTTERANCES:
            continue
        order = stream(seed, "asi", "split", speaker).permutation(len(items))
        shuffled = [items[i] for i in order]
        held = max(1, round(_SHARE * len(items))) if full else 1
        for part, start, end in zip(parts, (2 * held, 0, held), (len(items), held, 2 * held), strict=True):
            part[speaker] = tuple(sorted(shuffled[start:end]))
    training, validation, test = parts
    if len(training) < 2:
        raise InputError(
            f"speaker identification: {len(training)} of {len(utterances_by_speaker)} speakers have at least"
            f" {MINIMUM_UTTERANCES} utterances; 2 are needed"
        )
    return AsiSplit(training, validation, test, len(utterances_by_speaker) - len(training))
