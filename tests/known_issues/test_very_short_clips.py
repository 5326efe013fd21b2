"""Very short clips crashed the embedding network: its kernel was longer than the input.

Seen in https://github.com/NVIDIA-NeMo/Speech/pull/14055 and
https://github.com/WiraDKP/pytorch_speaker_embedding_for_diarization/issues/5.
"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import soundfile

from made_corpora import vowel, write_corpus, write_params
from made_speech import made_bundles
from voxveil.audio.files import SHORT_SAMPLES
from voxveil.cli.main import main
from voxveil.corpus.split import Split
from voxveil.features.speaker.encoder import EncoderSize, SpeakerEncoder, SpeakerNetwork
from voxveil.training.loop import seeded

pytestmark = pytest.mark.torch

SAMPLES = (0, 1, 400, 800)


def test_prepare_pads_to_one_minimum_and_what_it_keeps_can_be_embedded(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    corpus = write_corpus(tmp_path / "corpus", each=2)
    for speaker, samples in zip(("20", "21", "22", "23"), SAMPLES, strict=True):
        soundfile.write(corpus / f"part/{speaker}/7/{speaker}-7-0009.wav", vowel(samples), 16_000)
    params = write_params(tmp_path / "params.yaml", source=str(corpus))
    outputs = [f"--out={side}={tmp_path / 'out' / side}" for side in ("public", "private")]
    command = ["stage", "prepare", "--params", str(params), *outputs]
    assert main(command) == 2
    assert "20-7-0009.wav: refused, it has 0 samples (utterance 20-7-0009;" in capsys.readouterr().err
    assert not (tmp_path / "out/public").exists()

    write_params(params, source=str(corpus), on_bad_audio="skip")
    assert main(command) == 0
    facts = [json.loads((tmp_path / f"out/{side}/corpus.json").read_text()) for side in ("public", "private")]
    assert sum(fact["flags"].get("padded", 0) for fact in facts) == 2
    assert sum(fact["skipped"] for fact in facts) == 2
    bad = [
        json.loads((tmp_path / f"out/{side}/exceptions.json").read_text()) for side in ("public", "private")
    ]
    reasons = {entry["utterance"]: entry["reason"] for facts in bad for entry in facts["skipped"]}
    assert sorted(reasons) == ["20-7-0009", "21-7-0009"]
    # One sample has nothing to differ from: silence.
    assert "it has 0 samples" in reasons["20-7-0009"]
    assert "(silence)" in reasons["21-7-0009"]

    with seeded(1, "made"):
        encoder = SpeakerEncoder(SpeakerNetwork(EncoderSize(16, 8)))
    short = 0
    for place in ("public/extractor", "public/pool", "public/attacker", "private/private"):
        split = Split(tmp_path / "out" / place)
        for utterance in split:
            short += utterance.samples == SHORT_SAMPLES
            assert np.linalg.norm(encoder.embed(split.audio(utterance.id))) == pytest.approx(1.0, abs=1e-6)
    assert short == 2


def test_anonymize_keeps_the_length_of_the_shortest_recordings(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("VOXVEIL_LEDGER", str(tmp_path / "ledger"))
    made_bundles(tmp_path)
    (tmp_path / "in").mkdir()
    for samples in SAMPLES:
        soundfile.write(tmp_path / f"in/{samples}.wav", vowel(samples), 16_000)
    words = ["anonymize", str(tmp_path / "in"), str(tmp_path / "out"), "--model"]
    command = [*words, str(tmp_path / "bundles/anon_dp"), "--threads", "1"]
    assert main(command) == 2
    assert "in/0.wav: refused, it has 0 samples" in capsys.readouterr().err
    assert main([*command, "--on-bad-audio", "skip"]) == 0
    assert "3 recordings anonymized, 0 kept from an earlier run, 1 skipped" in capsys.readouterr().out
    lengths = {path.stem: soundfile.info(path).frames for path in (tmp_path / "out").glob("*.flac")}
    assert lengths == {"1": 1, "400": 400, "800": 800}
