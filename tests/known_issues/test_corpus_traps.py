"""Faults people met with corpora, speaker ids and trial lists: each is one test."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import soundfile

from made_corpora import write_corpus, write_params
from voxveil.corpus.kaldi import read_kaldi
from voxveil.corpus.librispeech import read_librispeech, read_speakers, speaker_of
from voxveil.corpus.split import Split
from voxveil.corpus.trials import read_trials
from voxveil.runtime.errors import IncompleteInputError, InputError
from voxveil.stages.run import run_stage


def prepare(folder: Path, corpus: Path, seed: int = 17) -> Path:
    params = write_params(folder / "params.yaml", source=str(corpus))
    params.write_text(params.read_text().replace("seed: 17", f"seed: {seed}"))
    out = folder / f"out{seed}"
    run_stage("prepare", params, {}, {"public": out / "public", "private": out / "private"})
    return out


def test_lists_can_be_rebuilt_from_the_plain_corpus(tmp_path: Path) -> None:
    """Published trial lists could not be made again from the download."""
    corpus = write_corpus(tmp_path / "corpus", each=2, samples=2000)
    made = []
    for name, seed in (("a", 17), ("b", 17), ("c", 18)):
        (tmp_path / name).mkdir()
        out = prepare(tmp_path / name, corpus, seed)
        files = ("public/lists.json", "private/trials/enrol.scp", "private/trials/trials.txt")
        made.append([(out / file).read_bytes() for file in files])
        genders = (out / "private/private/spk2gender").read_text().split()[1::2]
        assert sorted(genders) == ["f", "f", "m", "m"]
    assert made[0] == made[1] != made[2]


@pytest.mark.parametrize("line", ["touch {marker}; cat a.wav |", "touch {marker} |", "| touch {marker}"])
def test_a_command_in_wav_scp_is_refused_and_never_run(tmp_path: Path, line: str) -> None:
    """Audio lists may hold a command whose output is the audio."""
    marker = tmp_path / "marker"
    soundfile.write(tmp_path / "a.wav", np.random.default_rng(0).normal(0, 0.1, 4000), 16_000)
    (tmp_path / "wav.scp").write_text("u1 a.wav\nu2 " + line.format(marker=marker) + "\n")
    (tmp_path / "utt2spk").write_text("u1 a\nu2 b\n")
    (tmp_path / "spk2gender").write_text("a f\nb m\n")
    with pytest.raises(InputError, match=r"wav.scp:2: utterance u2 is a command"):
        read_kaldi(tmp_path)
    assert not marker.exists()


def test_an_utterance_on_both_sides_is_refused(tmp_path: Path) -> None:
    """The same utterance stood in enrolment and in test."""
    out = prepare(tmp_path, write_corpus(tmp_path / "corpus", each=2, samples=2000))
    trials = out / "private/trials"
    split = Split(out / "private/private")
    speaker_of_utterance = {u.id: u.speaker for u in split}
    lists = read_trials(trials, speaker_of_utterance)
    held = {item for items in lists.enrolments.values() for item in items}
    assert not held & set(lists.trial_utterances)
    enrolment, (utterance,) = next(iter(lists.enrolments.items()))
    with (trials / "trials.txt").open("a") as handle:
        handle.write(f"{enrolment} {utterance} target\n")
    with pytest.raises(InputError, match=f"utterance {utterance} is also enrolled"):
        read_trials(trials, speaker_of_utterance)


def test_speakers_are_a_field_not_a_number_of_characters(tmp_path: Path) -> None:
    """Speakers merged because their id was cut from the wrong part of a name."""
    assert [speaker_of(i) for i in ("61-70968-0000", "6-170968-0000", "6170-968-0000")] == ["61", "6", "6170"]
    corpus = write_corpus(tmp_path, speakers=0)
    rows = []
    for speaker, chapter in (("61", "70968"), ("6", "170968"), ("6170", "968")):
        place = corpus / "part" / speaker / chapter
        place.mkdir(parents=True)
        soundfile.write(place / f"{speaker}-{chapter}-0000.flac", np.ones(10), 16_000)
        rows.append(f"{speaker} | F | part | 1.0 | |CBW|Simon\n")
    (corpus / "SPEAKERS.TXT").write_text("".join(rows))
    assert read_speakers(corpus / "SPEAKERS.TXT") == {"61": "F", "6": "F", "6170": "F"}
    assert {clip.speaker for clip in read_librispeech(corpus).clips} == {"61", "6", "6170"}


def test_an_utterance_without_pitch_stops_the_reader(tmp_path: Path) -> None:
    """A later stage went on with 4 of 5 utterances after a file was lost."""
    import tarfile

    out = prepare(tmp_path, write_corpus(tmp_path / "corpus", each=2, samples=2000))
    shard = out / "private/private/f0-000.tar"
    with tarfile.open(shard) as tar:
        members = [(member, tar.extractfile(member).read()) for member in tar]  # type: ignore[union-attr]
    lost = Path(members[1][0].name).stem
    with tarfile.open(shard, "w") as tar:
        for member, data in members[:1] + members[2:]:
            import io

            tar.addfile(member, io.BytesIO(data))
    split = Split(out / "private/private")
    with pytest.raises(IncompleteInputError, match=f"utterance {lost}: not in"):
        split.f0(split.utterances[0].id)
