"""Context of one run of a stage: parameters, inputs, outputs, key, and its share of the work."""

from __future__ import annotations

import heapq
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from voxveil.config import Params, SystemParams
from voxveil.runtime.atomic import write_json
from voxveil.runtime.errors import InputError
from voxveil.runtime.terminal import Progress
from voxveil.tracking.stream import Sink, silent

__all__ = ["PART", "Share", "StageContext"]

#: In an output of a share: which of the whole's items it holds, and where each stands there.
PART = "part.json"

_SHARE = re.compile(r"([1-9][0-9]{0,3})-of-([1-9][0-9]{0,3})\Z")


@dataclass(frozen=True)
class Share:
    """One of several shares of a stage's work.

    Attributes:
        number: Which one, from 1.
        count: How many there are; 1 = the whole.
    """

    number: int = 1
    count: int = 1

    @classmethod
    def parse(cls, text: str) -> Share:
        """Read what :meth:`__str__` writes, e.g. ``2-of-3``.

        Raises:
            InputError: It is of another form, or there is no such share.
        """
        match = _SHARE.match(text)
        share = cls(int(match[1]), int(match[2])) if match else cls()
        if not match or share.number > share.count:
            raise InputError(
                f"share: must be NUMBER-of-COUNT, e.g. 2-of-3, got {text!r} (NUMBER from 1 to COUNT)"
            )
        return share

    def __str__(self) -> str:
        return f"{self.number}-of-{self.count}"

    def of(self, sizes: Mapping[str, int], where: str) -> frozenset[str]:
        """Return the items of this share; the shares are disjoint and hold every item together.

        The largest item first, each to the share that has least so far, ties by id and number, whatever
        order the items come in: no two shares differ by more than the largest item.

        Args:
            sizes: Size of each item.
            where: What to name in an error.

        Raises:
            InputError: There are fewer items than shares.
        """
        if self.count == 1:
            return frozenset(sizes)
        if len(sizes) < self.count:
            raise InputError(f"{where}: {len(sizes)} utterances are too few for {self.count} shares")
        loads = [(0, number) for number in range(1, self.count + 1)]
        chosen = set()
        for item in sorted(sizes, key=lambda name: (-sizes[name], name)):
            load, number = loads[0]
            heapq.heapreplace(loads, (load + sizes[item], number))
            if number == self.number:
                chosen.add(item)
        return frozenset(chosen)


@dataclass(frozen=True)
class StageContext:
    """One run of one stage.

    Attributes:
        stage: Stem of the stage.
        key: Variant or system, empty for stages without one.
        params: All checked parameters; a stage reads its own sections only.
        inputs: Finished input folders by port name, verified.
        outputs: Empty folders by port name, moved into place when the stage returns.
        checkpoints: Folder for this fingerprint's checkpoints, outside declared outputs.
        fingerprint: Hash of the stage's parameters, inputs and code.
        sink: Of a training stage: receives every point of its curve, which goes to MLflow.
        training: Fingerprint of each training behind the inputs, where the caller knows them.
        share: Of the work, where the stage runs in several pods.
    """

    stage: str
    key: str
    params: Params
    inputs: Mapping[str, Path]
    outputs: Mapping[str, Path]
    checkpoints: Path
    fingerprint: str
    sink: Sink = silent
    training: Mapping[str, str] = field(default_factory=dict)
    share: Share = Share()

    @property
    def label(self) -> str:
        """The stage with its key, e.g. ``score[anon]``, for progress lines and errors."""
        return f"{self.stage}[{self.key}]" if self.key else self.stage

    def progress(self, what: str, utterances: int) -> Progress:
        """Return a progress line of one step of the stage over its utterances."""
        return Progress(f"{self.label} {what}".rstrip(), utterances, "utterance")

    @property
    def system(self) -> SystemParams:
        """The system this run is for."""
        return self.params.systems[self.key]

    def mark_part(self, port: str, whole: Sequence[str], held: Collection[str]) -> None:
        """Write into an output of a share which items it holds; all are gathered in the order of the whole.

        Args:
            port: The output.
            whole: Every item, in the order of the unshared output; nothing is written where this is one.
            held: Those this output holds.
        """
        if self.share.count > 1:
            places = {item: position for position, item in enumerate(whole) if item in held}
            write_json(self.outputs[port] / PART, {"format": 1, "of": len(whole), "places": places})
