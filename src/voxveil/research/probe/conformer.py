"""The full-size recognizer of U_ASR, a conformer trained on speech and transcripts.

A trained one is kept in a folder named after what it was made from, and its training is resumed: another
parameter, another version of the speech or of the code makes another.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from voxveil.audio.frames import SAMPLE_RATE
from voxveil.config import Params
from voxveil.config.fields import listed
from voxveil.config.sections import section_of
from voxveil.corpus.split import Utterance
from voxveil.research.asr.recognizer import LONGEST_SECONDS, Recognizer
from voxveil.research.asr.train import train_recognizer
from voxveil.research.decoding.word_search import word_errors
from voxveil.research.params import AsrParams
from voxveil.research.probe.speeches import Cell, Speeches, judged, u_asr
from voxveil.runtime.atomic import read_json, whole_directory
from voxveil.runtime.done import file_sha256, finish, require_done
from voxveil.runtime.errors import InputError
from voxveil.runtime.stamps import content_digest, has_stamp, write_stamp
from voxveil.runtime.terminal import Progress
from voxveil.stages.run import checkpoint_root, code_digest
from voxveil.training.checkpoint import write_curve
from voxveil.utility.edits import error_rate

__all__ = ["ConformerJudge"]

#: Parameters of section ``asr`` that change no trained recognizer.
_OF_DECODING = ("beam", "ctc_decoding", "workers")
#: Code behind a trained recognizer.
_CODE = ("research/asr", "audio/mel.py", "training", "utility/transcripts.py")


class ConformerJudge:
    """A conformer :class:`voxveil.research.probe.speeches.Judge`.

    Args:
        speeches: What is trained on and heard, with transcripts.
        params: Section ``asr``; ``transcribe.judged_subsets`` names what is heard.
        folder: Where trained recognizers are kept; a folder for each.

    Raises:
        InputError: There are no transcripts, or an utterance is too long to be decoded.
    """

    def __init__(self, speeches: Speeches, params: Params, folder: Path) -> None:
        speeches.check(phones=False)
        self._speeches, self._params, self._folder = speeches, params, folder
        self._asr = section_of(params, AsrParams)
        self.tested: Sequence[Utterance] = judged(speeches.tested, listed(params.transcribe.judged_subsets))
        self._training: dict[str, Any] = {}
        for split, utterances in ((speeches.training, speeches.training), (speeches.tested, self.tested)):
            if not any(utterance.text for utterance in utterances):
                raise InputError(f"{split.folder}: no transcripts; U_ASR of words needs them")
        for utterance in self.tested:
            if utterance.samples > LONGEST_SECONDS * SAMPLE_RATE:
                raise InputError(
                    f"utterance {utterance.id}: {utterance.samples / SAMPLE_RATE:.0f} s, a recognizer hears"
                    f" {LONGEST_SECONDS:g} s at most"
                )

    @property
    def name(self) -> str:
        """Name of the recognizer in the table."""
        from importlib.metadata import version

        asr = self._asr
        units = f"at most {asr.pieces} pieces" if asr.pieces else "characters"
        search = f"beam {asr.beam}, CTC {asr.ctc_decoding:g}" if asr.beam else "greedy CTC"
        return (
            f"conformer: SpeechBrain {version('speechbrain')}, {asr.encoder_layers} + {asr.decoder_layers}"
            f" layers of width {asr.width}, {units}, CTC and attention, {search}, no language model"
        )

    def training(self) -> dict[str, Any]:
        """Return by state how many utterances were trained on, left out and held out, and the steps."""
        return dict(self._training)

    def trained_on(self, state: str) -> Callable[[str], Cell]:
        """Train on speech in a state, or load it; returns the test function of speech in a state."""
        recognizer = self._recognizer(state)
        asr, seed = self._asr, self._params.base.seed

        def hear(tested_state: str) -> Cell:
            audio = self._speeches.read_tested(tested_state)
            progress = Progress(f"asr[{state}] hears {tested_state}", len(self.tested), "utterance")
            edits = {}
            for number, utterance in enumerate(self.tested, 1):
                words = recognizer.transcribe(
                    audio(utterance.id),
                    f"utterance {utterance.id}",
                    beam=asr.beam,
                    ctc_weight=asr.ctc_decoding,
                )
                edits[utterance.id] = word_errors(utterance.text, words.split())
                progress.update(number)
            speakers = {utterance.id: utterance.speaker for utterance in self.tested}
            rate = error_rate(edits, speakers, replicates=self._params.transcribe.replicates, seed=seed)
            return {"phones": None, "words": u_asr(rate.to_json())}

        return hear

    def _recognizer(self, state: str) -> Recognizer:
        stamp = self._made_from(state)
        mark = content_digest(stamp)
        folder = self._folder / f"{state}-{mark[:8]}"
        if has_stamp(folder, stamp):
            require_done(folder, "recognizer")
        else:
            checkpoints = checkpoint_root() / "probe_utility" / mark[:32]
            trained = train_recognizer(
                list(self._speeches.training),
                self._speeches.read_training(state),
                self._asr,
                name=f"asr[{state}]",
                seed=self._params.base.seed,
                checkpoints=checkpoints,
            )
            facts = {name: getattr(trained, name) for name in ("utterances", "left_out", "held_out", "step")}
            facts["loss"] = trained.curve[-1]["loss"]
            with whole_directory(folder) as partial:
                trained.recognizer.save(partial, {"training": facts, "trained_on": state})
                write_curve(partial, trained.curve)
                write_stamp(partial, stamp)
                finish(partial, "probe_utility", state)
            shutil.rmtree(checkpoints, ignore_errors=True)
        self._training[state] = read_json(folder / "model.json")["training"]
        return Recognizer.load(folder)

    def _made_from(self, state: str) -> dict[str, Any]:
        training = self._speeches.training
        speech = training if state == "original" else self._speeches.training_anonymized
        asr = {name: value for name, value in asdict(self._asr).items() if name not in _OF_DECODING}
        return {
            "state": state,
            "asr": asr,
            "seed": self._params.base.seed,
            "speech": file_sha256(speech.folder / "manifest.jsonl"),
            "transcripts": file_sha256(training.folder / "manifest.jsonl"),
            "code": {name: code_digest(name) for name in _CODE},
        }
