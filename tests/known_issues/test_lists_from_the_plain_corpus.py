"""Public trial and enrolment lists could not be rebuilt from the plain download.

Seen in https://github.com/Voice-Privacy-Challenge/Voice-Privacy-Challenge-2024/pull/72.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from given_files import DATA, given_folder, sources
from made_corpora import write_corpus, write_params
from voxveil.audio.frames import frame_count
from voxveil.corpus.librispeech import read_speakers
from voxveil.corpus.split import Split
from voxveil.stages import prepare
from voxveil.stages.run import run_stage

LISTS = ("public/lists.json", "private/trials/enrol.scp", "private/trials/trials.txt")


@pytest.fixture(params=sources(DATA, "LibriSpeech"))
def bare(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """A LibriSpeech tree of 12 speakers with three recordings each, and nothing else: made, or of people."""
    folder = tmp_path / "corpus"
    if request.param == "made":
        return write_corpus(folder, each=3, samples=2_000)
    librispeech = given_folder(DATA, "LibriSpeech")
    assert librispeech is not None
    for speaker in sorted((librispeech / "test-mini").iterdir())[:12]:
        clips = sorted(speaker.rglob("*.flac"), key=lambda path: (path.stat().st_size, path.name))
        for path in clips[:3]:
            place = folder / path.relative_to(librispeech)
            place.parent.mkdir(parents=True, exist_ok=True)
            place.symlink_to(path)
    (folder / "SPEAKERS.TXT").write_bytes((librispeech / "SPEAKERS.TXT").read_bytes())
    return folder


def test_equal_seeds_give_equal_lists(bare: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # Lists do not depend on F0, which takes most of the time.
    monkeypatch.setattr(prepare, "track_f0", lambda audio: np.full(frame_count(len(audio)), 120, np.float32))
    made = []
    for name, seed in (("a", 17), ("b", 17), ("c", 18)):
        params = write_params(tmp_path / "params.yaml", source=str(bare))
        params.write_text(params.read_text().replace("seed: 17", f"seed: {seed}"))
        out = tmp_path / name
        run_stage("prepare", params, {}, {side: out / side for side in ("public", "private")})
        made.append([(out / file).read_bytes() for file in LISTS])
    assert made[0] == made[1]
    assert all(one != other for one, other in zip(made[0], made[2], strict=True))

    table = read_speakers(bare / "SPEAKERS.TXT")
    for place in ("public/extractor", "public/pool", "public/attacker", "private/private"):
        split = Split(tmp_path / "a" / place)
        assert len(split) > 0
        genders = (tmp_path / "a" / place / "spk2gender").read_text().split()
        assert dict(zip(genders[::2], genders[1::2], strict=True)) == {
            speaker: table[speaker].lower() for speaker in split.speakers
        }
        assert all(utterance.sex == table[utterance.speaker] for utterance in split)
