"""Every model of params/librispeech.yaml at full size: parameters, one training step, one utterance.

python benchmarks/speech/full_size.py [SECONDS_OF_SPEECH]
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests"))

from made_speech import write_speech  # noqa: E402
from voxveil.config import Params  # noqa: E402
from voxveil.config.compose import compose  # noqa: E402
from voxveil.config.model import TrainVocoderParams  # noqa: E402
from voxveil.config.sections import section_of  # noqa: E402
from voxveil.corpus.phones import PHONES  # noqa: E402
from voxveil.corpus.split import Split  # noqa: E402
from voxveil.features.content.train import LabelledUtterance, mel_features, train_content  # noqa: E402
from voxveil.features.extraction import System  # noqa: E402
from voxveil.features.pitch.train import PitchUtterance, train_pitch  # noqa: E402
from voxveil.features.speaker.targets import Target  # noqa: E402
from voxveil.features.speaker.train import train_encoder  # noqa: E402
from voxveil.privacy import PublicNoise  # noqa: E402
from voxveil.privacy.loss_rule import LossRule  # noqa: E402
from voxveil.research.asr.train import train_recognizer  # noqa: E402
from voxveil.research.params import AsrParams  # noqa: E402
from voxveil.synthesis.speech import Speech  # noqa: E402
from voxveil.synthesis.synthesizer import Synthesizer  # noqa: E402
from voxveil.synthesis.train_acoustic import AcousticData, train_acoustic  # noqa: E402
from voxveil.synthesis.train_vocoder import copy_synthesis, train_vocoder  # noqa: E402
from voxveil.synthesis.vocoders import build_vocoder  # noqa: E402
from voxveil.training.loop import device  # noqa: E402

STATES = 5_000


def timed(name: str, work: Callable[[], object]) -> None:
    """Run and print the seconds."""
    began = time.monotonic()
    said = work()
    print(f"  {name:<34} {time.monotonic() - began:7.2f} s   {said}", flush=True)


def step(speech: Speech, split: Split, params: TrainVocoderParams, made: list[Any]) -> str:
    """Train a vocoder for one step."""
    vocoder, _ = train_vocoder(speech, split.utterances, params, 1)
    made.append(vocoder.eval())
    return f"{count(vocoder) / 1e6:.1f} M parameters, batch {params.batch}"


def copied(speech: Speech, made: list[Any]) -> str:
    """Speak an utterance's own spectrum."""
    return f"{len(copy_synthesis(made[0], speech['a-0']))} samples"


def main() -> None:
    """Print a line for each model."""
    params = compose(ROOT / "params/librispeech.yaml")
    seconds = float(sys.argv[1]) if len(sys.argv) > 1 else 3.0
    samples = int(seconds * 16_000)
    print(f"device {device()}, {seconds:g} s of speech")
    with tempfile.TemporaryDirectory() as folder:
        write_speech(Path(folder) / "speech", {name: [samples] for name in "abcd"}, text="A")
        split = Split(Path(folder) / "speech")
        speech = Speech(split)
        for kind, batch in (("stft", 4), ("hn_sinc", 2), ("nsf_gan", 2)):
            one = replace(params.train_vocoder, kind=kind, steps=1, batch=batch, patience=0)
            made: list[Any] = []
            timed(f"vocoder {kind}: one step", partial(step, speech, split, one, made))
            timed(f"vocoder {kind}: one utterance", partial(copied, speech, made))
        others(params, split, Path(folder))


def others(params: Params, split: Split, folder: Path) -> None:
    """The extractors, the speaker encoder, the acoustic model, and a whole utterance through all of them."""
    speech = Speech(split)
    utterances = split.utterances
    kept: dict[str, Any] = {}

    def pitch() -> str:
        spoken = [PitchUtterance(u.id, u.speaker, split.f0(u.id)) for u in utterances]
        kept["pitch"] = train_pitch(spoken, replace(params.train_pitch, steps=1, batch=2), "dp", 1)
        return f"{count(kept['pitch'].model) / 1e6:.2f} M parameters"

    def content() -> str:
        one = replace(params.train_content, steps=1, batch=2)
        # As many classes as there are triphone states in the package's acoustic model.
        classes = [index % len(PHONES) for index in range(STATES)]
        rng = np.random.default_rng(0)
        spoken = [
            LabelledUtterance(
                u.id, u.speaker, mel_features(split.audio(u.id)), rng.integers(0, STATES, u.frames)
            )
            for u in utterances
        ]
        kept["content"] = train_content(spoken, PHONES, classes, one, "dp", 1)
        return f"{count(kept['content'].model) / 1e6:.1f} M parameters, {STATES} classes"

    def speaker() -> str:
        one = replace(params.train_speaker, steps=1, batch=4, crop_seconds=1.0)
        kept["speaker"] = train_encoder(split, one, name="train_speaker", seed=1).encoder
        return f"{count(kept['speaker']._network) / 1e6:.1f} M parameters"

    def acoustic() -> str:
        extractors = kept["pitch"].extractor, kept["content"].extractor
        rule = LossRule(
            extractors[0].mechanism, extractors[1].mechanism, params.train_pitch.channels, extractors[1].every
        )
        kept["system"] = System(*extractors, rule)
        data = AcousticData(speech, kept["system"], kept["speaker"].embed, 1, "anon_dp")
        one = replace(params.train_synthesis, steps=1, batch=4, patience=0)
        kept["acoustic"], _ = train_acoustic(data, utterances, one, "anon_dp", 1)
        return f"{count(kept['acoustic']) / 1e6:.1f} M parameters"

    asr = section_of(params, AsrParams)

    def conformer() -> str:
        one = replace(asr, steps=1, pieces=0, patience=0, batch_seconds=30)
        trained = train_recognizer(utterances, split.audio, one, name="asr", seed=1)
        kept["asr"] = trained.recognizer
        return f"{count(trained.recognizer._network) / 1e6:.1f} M parameters, {trained.utterances} utterances"

    def heard() -> str:
        words = kept["asr"].transcribe(split.audio(utterances[0].id), beam=asr.beam)
        return f"beam {asr.beam}, {len(words)} letters"

    def whole() -> str:
        audio, item = split.audio(utterances[0].id), utterances[0]
        features = kept["system"].release_features(audio, split.f0(item.id), PublicNoise(1, "full"))
        vocoder = build_vocoder(params.train_vocoder).eval()
        synthesizer = Synthesizer(kept["acoustic"], vocoder, pitch_conversion=False)
        target = Target(kept["speaker"].embed(audio), 5.0, 0.2, 0)
        spoken = synthesizer.synthesize(features.content, features.pitch, target, len(audio))
        return f"{len(spoken)} samples, finite: {bool(np.isfinite(spoken).all())}"

    timed("pitch extractor: one step", pitch)
    timed("content extractor: one step", content)
    timed("speaker encoder: one step", speaker)
    timed("acoustic model: one step", acoustic)
    timed("anon_dp: one utterance", whole)
    timed("conformer: one step", conformer)
    timed("conformer: one utterance", heard)


def count(model: torch.nn.Module) -> int:
    """Return the number of parameters."""
    return sum(p.numel() for p in model.parameters())


if __name__ == "__main__":
    main()
