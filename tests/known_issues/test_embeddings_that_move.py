"""Padding in a batch, or random dither, moved embeddings and the EER between runs.

Seen in https://github.com/speechbrain/speechbrain/issues/1374 and https://github.com/SEC4SR/SEC4SR/issues/7.
Embeddings of every attacker, and what the score stage writes, do not depend on chance or on company.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from made_voices import voice, write_voices
from voxveil.attack.attackers.interface import Attacker, TrainingSetup, embed_utterances
from voxveil.attack.attackers.registry import train_attacker
from voxveil.config.networks import TrainAttackerParams

pytest.importorskip("torch")
pytestmark = pytest.mark.torch

SMALL = TrainAttackerParams(
    channels=8, embedding=16, steps=4, batch=8, crop_seconds=0.5, learning_rate=1e-3, codebook=8
)
KINDS = ("ecapa", "xvector_plda", "f0_histogram", "phone_histogram", "prosody")


@pytest.fixture(scope="module", params=KINDS)
def attacker(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Attacker:
    speech = write_voices(tmp_path_factory.mktemp("speech"), range(4), 3, seconds=0.8)
    return train_attacker(request.param, speech, TrainingSetup(SMALL, "original", 1)).attacker


def test_a_clip_is_the_same_alone_and_beside_a_longer_one(attacker: Attacker) -> None:
    clips = {"short": voice(7, 0, 12_000), "long": voice(8, 0, 40_000)}
    alone = embed_utterances(attacker, ["short"], clips.__getitem__)
    beside = embed_utterances(attacker, ["long", "short"], clips.__getitem__)
    assert np.abs(alone["short"] - beside["short"]).max() <= 1e-4
    assert np.array_equal(alone["short"], beside["short"])


def test_embedding_twice_gives_the_same_bytes(attacker: Attacker, tmp_path: Path) -> None:
    clip = voice(9, 1, 16_000)
    first, second = (attacker.embed(clip, "clip") for _ in range(2))
    assert first.tobytes() == second.tobytes()
    references = [np.stack([first, second])]
    inputs = np.stack([first])
    assert (
        attacker.backend.matrix(inputs, references).tobytes()
        == attacker.backend.matrix(inputs, references).tobytes()
    )
