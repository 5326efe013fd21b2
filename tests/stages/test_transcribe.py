"""Stage transcribe: a real recognizer on clear, on broken and on missing speech."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("torch")

from tests.made_phones import run_trained, write_params, write_phone_corpus

from made_pretrained import import_ctc
from voxveil.audio.files import encode_flac
from voxveil.corpus.embedded import EmbeddedSource
from voxveil.corpus.split import Split, SplitWriter, Utterance
from voxveil.pretrained.folder import read_model
from voxveil.runtime.atomic import write_json
from voxveil.runtime.done import finish
from voxveil.runtime.errors import IncompleteInputError, InputError, ParamsError, VoxveilError
from voxveil.stages.run import run_stage

pytestmark = pytest.mark.torch


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A corpus, a trained recognizer, and released speech: clear, noise, silence, one trial short."""
    folder = tmp_path_factory.mktemp("made")
    write_phone_corpus(folder)
    run_trained("train_content", "plain", folder, folder / "recognizer")
    private = Split(folder / "private" / "private")
    rng = np.random.default_rng(0)
    absent = first_trial(folder)
    for name in ("clear", "noise", "silence", "short"):
        with SplitWriter(folder / name) as writer:
            for utterance in private:
                if name == "short" and utterance.id == absent:
                    continue
                audio = private.audio(utterance.id)
                if name in ("noise", "silence"):
                    level = 0.1 if name == "noise" else 1e-4
                    audio = (level * rng.standard_normal(len(audio))).astype(np.float32)
                writer.add(utterance, encode_flac(audio, utterance.id)[0])
    return folder


def first_trial(made: Path) -> str:
    return (made / "private" / "trials" / "trials.txt").read_text().split()[1]


def transcribe(
    made: Path,
    released: str,
    out: Path,
    *,
    key: str = "anon",
    private: Path | None = None,
    **params: object,
) -> dict:
    finish(made / released, "anonymize", key, "released")
    run_stage(
        "transcribe",
        write_params(out / "params.yaml", transcribe=params),
        {
            "recognizer": made / "recognizer" / "model",
            "released": made / released,
            "private": private or made / "private",
        },
        {"transcripts": out / "transcripts"},
        key=key,
    )
    return json.loads((out / "transcripts" / "transcripts.json").read_text())


def test_clear_speech_is_understood_and_noise_is_not(made: Path, tmp_path: Path) -> None:
    clear = transcribe(made, "clear", tmp_path / "clear", key="original")
    noise = transcribe(made, "noise", tmp_path / "noise")
    assert clear["per"]["value"] < 40 < 70 < noise["per"]["value"]
    low, high = clear["per"]["ci95"]
    assert low <= clear["per"]["value"] <= high
    assert clear["per"]["speakers"] == 4 and clear["per"]["unit"] == "%"
    # Everything that is released is transcribed, enrolment and trials.
    assert len(clear["utterances"]) == 12 == clear["per"]["utterances"]
    assert clear["wer"] is None
    rows = clear["utterances"].values()
    errors = sum(row["substitutions"] + row["deletions"] + row["insertions"] for row in rows)
    assert clear["per"]["value"] == pytest.approx(100 * errors / sum(row["reference"] for row in rows))
    assert all(row["reference"] == len(row["said"].split()) for row in rows)
    assert clear["recognizer"]["loss"]["epsilon"] == "inf"


def test_pitch_of_the_same_speech_is_kept_and_noise_has_none(made: Path, tmp_path: Path) -> None:
    """The corpus has the F0 its speech was made with, so what is tracked in it correlates."""
    clear = transcribe(made, "clear", tmp_path / "clear", pitch_utterances=6)["pitch"]
    assert clear["value"] > 0.5 and clear["utterances"] + clear["undefined"] == 6
    low, high = clear["ci95"]
    assert low <= clear["value"] <= high <= 1
    noise = transcribe(made, "noise", tmp_path / "noise", pitch_utterances=6)["pitch"]
    assert noise["undefined"] == 6 and noise["value"] is None
    assert transcribe(made, "clear", tmp_path / "off", pitch_utterances=0)["pitch"] is None


def test_equal_runs_write_equal_bytes(made: Path, tmp_path: Path) -> None:
    for name in ("a", "b"):
        transcribe(made, "clear", tmp_path / name)
    files = [(tmp_path / name / "transcripts" / "transcripts.json").read_bytes() for name in ("a", "b")]
    assert files[0] == files[1]


def test_a_missing_utterance_stops_it_by_name(made: Path, tmp_path: Path) -> None:
    with pytest.raises(IncompleteInputError, match=first_trial(made)):
        transcribe(made, "short", tmp_path)
    assert not (tmp_path / "transcripts").exists()


def test_a_recogniser_that_fails_on_unprotected_speech_is_a_setup_fault(made: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"transcribe\[original\].*unprotected speech"):
        transcribe(made, "silence", tmp_path, key="original")


def test_a_corpus_without_phones_stops_in_one_line(made: Path, tmp_path: Path) -> None:
    shutil.copytree(made / "private", tmp_path / "private")
    (tmp_path / "private" / "private" / "phones.ctm").unlink()
    (tmp_path / "private" / "_DONE.json").unlink()
    finish(tmp_path / "private", "prepare", None)
    with pytest.raises(IncompleteInputError, match="no phone timing, and transcribe needs it"):
        transcribe(made, "clear", tmp_path / "out", private=tmp_path / "private")


@pytest.fixture(scope="module")
def spoken(made: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Sentences of espeak-ng in two subsets; released as they are, and as noise."""
    pytest.importorskip("pocketsphinx")
    pytest.importorskip("espeakng_loader")
    folder = tmp_path_factory.mktemp("spoken")
    source = EmbeddedSource(seed=5, public_speakers=0, private_speakers=3, utterances=2)
    noise = np.random.default_rng(2)
    splits = ("private/private", "speech", "hiss")
    with ExitStack() as stack:
        writers = [stack.enter_context(SplitWriter(folder / name)) for name in splits]
        for clip in source.clips:
            reading = source.read(clip)
            subset = "checked" if clip.id.endswith("0") else "guessed"
            item = Utterance(clip.id, clip.speaker, clip.sex, len(reading.audio), clip.text, subset)
            flac = encode_flac(reading.audio, clip.id)[0]
            hiss = encode_flac(noise.normal(0, 0.05, len(reading.audio)), clip.id)[0]
            writers[0].add(item, flac, phones=reading.phones)
            writers[1].add(item, flac)
            writers[2].add(item, hiss)
    write_json(folder / "private" / "corpus.json", {"machine_transcripts": ["guessed"]})
    finish(folder / "private", "prepare", None)
    shutil.copytree(made / "recognizer", folder / "recognizer")
    return folder


def test_words_are_counted_by_subset_and_judged(spoken: Path, tmp_path: Path) -> None:
    words = {"words": "pocketsphinx", "judged_subsets": "checked", "workers": 1, "pitch_utterances": 0}
    private = spoken / "private"
    heard = transcribe(spoken, "speech", tmp_path / "speech", private=private, **words)["wer"]
    assert {name: rate["transcripts"] for name, rate in heard["subsets"].items()} == {
        "checked": "true",
        "guessed": "machine",
    }
    assert heard["utterances"] == 6 and heard["judged"]["utterances"] == 3
    assert heard["reference"] == sum(rate["reference"] for rate in heard["subsets"].values())
    assert heard["judged"]["value"] == heard["subsets"]["checked"]["value"]
    assert heard["value"] < heard["judged"]["permuted"]
    hiss = transcribe(spoken, "hiss", tmp_path / "hiss", private=private, **words)["wer"]
    assert hiss["value"] > heard["value"] and not hiss["judged"]["understood"]
    spread = {**words, "workers": 2}
    again = transcribe(spoken, "speech", tmp_path / "again", private=private, **spread)["wer"]
    assert again == heard, "the number of processes changes nothing"


def test_an_unknown_judged_subset_is_named(spoken: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="judged_subsets: no released subset 'dev'; there are: checked"):
        transcribe(
            spoken,
            "speech",
            tmp_path,
            private=spoken / "private",
            words="pocketsphinx",
            judged_subsets="dev",
            workers=1,
        )


def test_whisper_and_naturalness_judge_with_models_named_by_digest(
    spoken: Path, tmp_path: Path, imported: Callable[[str], Path]
) -> None:
    whisper, judge = imported("faster_whisper"), imported("distillmos")
    found = transcribe(
        spoken,
        "speech",
        tmp_path,
        private=spoken / "private",
        words="whisper",
        recognizer=str(whisper),
        naturalness=str(judge),
        workers=1,
        pitch_utterances=0,
    )
    assert found["wer"]["model"] == read_model(whisper).facts()
    assert found["wer"]["recognizer"].endswith("language en")
    mean = found["naturalness"]["distillmos"]
    assert 1 <= mean["ci95"][0] <= mean["value"] <= mean["ci95"][1] <= 5
    assert mean["model"]["digest"] == read_model(judge).digest
    rows = found["utterances"].values()
    assert np.mean([row["naturalness"]["distillmos"] for row in rows]) == pytest.approx(mean["value"])
    assert set(found["outliers"]) == {"words", "distillmos"}


def test_another_imported_recognizer_judges_words(spoken: Path, tmp_path: Path) -> None:
    folder = import_ctc(tmp_path / "ctc")
    options = {"private": spoken / "private", "recognizer": str(folder), "workers": 1, "pitch_utterances": 0}
    with pytest.raises(ParamsError, match="is a transformers_ctc, must be a faster_whisper"):
        transcribe(spoken, "speech", tmp_path, words="whisper", **options)
    found = transcribe(spoken, "speech", tmp_path, words="imported", **options)
    model = read_model(folder)
    assert (found["wer"]["model"], found["wer"]["recognizer"]) == (model.facts(), model.name)


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"words": "whisper"}, r"transcribe\.recognizer: is empty; transcribe\.words: whisper needs"),
        ({"words": "whisper", "recognizer": "absent"}, r"transcribe\.recognizer: absent: no such folder"),
        (
            {"naturalness": "absent", "pitch_utterances": 0},
            r"transcribe\.naturalness: absent: no such folder",
        ),
    ],
)
def test_an_absent_judge_is_named(spoken: Path, tmp_path: Path, params: dict, message: str) -> None:
    with pytest.raises(VoxveilError, match=message):
        transcribe(spoken, "speech", tmp_path, private=spoken / "private", **params)
    assert not (tmp_path / "transcripts").exists()
