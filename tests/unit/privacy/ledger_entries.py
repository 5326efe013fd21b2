"""Entries for the tests of the ledger."""

from __future__ import annotations

import hashlib

from voxveil.privacy import Entry, Identity, LaplaceCube, LaplaceSimplex


def make_entry(
    name: str = "61-1-0000",
    *,
    vectors: int = 100,
    pitch: float | None = 1.0,
    content: float | None = 2.0,
    speaker: str | None = "61",
    audio: bytes | None = None,
) -> Entry:
    cube = Identity("utterance") if pitch is None else LaplaceCube(pitch)
    simplex = Identity("vector") if content is None else LaplaceSimplex(content)
    losses = {"pitch": cube.loss_for((16, vectors)), "content": simplex.loss_for((vectors, 256))}
    digest = hashlib.sha256(name.encode() if audio is None else audio).hexdigest()
    return Entry(name, digest, vectors, losses, speaker)
