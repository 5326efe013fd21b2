"""The hybrid recognizer of U_ASR, for mini sizes.

An acoustic model of its own for each state of speech, the same phone timing (anonymization keeps frames),
a phone loop, and with ``probe.words`` lexicon and n-gram.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from voxveil.config import Params
from voxveil.config.fields import listed
from voxveil.config.sections import section_of
from voxveil.corpus.phones import PHONES, SILENCE
from voxveil.corpus.split import Utterance
from voxveil.features.content.extractor import ContentExtractor
from voxveil.features.content.labels import phone_targets, state_targets
from voxveil.features.content.train import LabelledUtterance, mel_features, train_content
from voxveil.privacy import PublicNoise
from voxveil.research.params import ProbeParams
from voxveil.research.probe.decoded import Listener
from voxveil.research.probe.speeches import Cell, Read, Speeches, judged, u_asr
from voxveil.runtime.errors import ParamsError
from voxveil.utility.decode import decode_phones
from voxveil.utility.edits import count_edits, error_rate

__all__ = ["HybridJudge"]


class HybridJudge:
    """A hybrid :class:`voxveil.research.probe.speeches.Judge`.

    Args:
        speeches: What is trained on and heard.
        params: ``train_content`` gives sizes and steps, ``transcribe.variant`` the variant (without noise),
            ``transcribe.judged_subsets`` what is heard, ``probe.words`` whether words are decoded.
    """

    def __init__(self, speeches: Speeches, params: Params) -> None:
        variant = params.transcribe.variant
        if params.content_variants[variant].mechanism != "identity":
            raise ParamsError(
                f"transcribe.variant: {variant!r} adds noise; U_ASR needs a recognizer without it"
            )
        speeches.check(phones=True)
        self._speeches, self._params, self._knobs = speeches, params, section_of(params, ProbeParams)
        self.tested: Sequence[Utterance] = judged(speeches.tested, listed(params.transcribe.judged_subsets))
        self._utterances = list(speeches.training)
        self._phones = phone_targets(speeches.training, self._utterances, PHONES)
        states = params.train_content.targets == "states"
        self._targets = (
            state_targets(speeches.training, self._utterances, self._phones) if states else self._phones
        )

    @property
    def name(self) -> str:
        """Name of the recognizer in the table."""
        words = "; words by lexicon and n-gram" if self._knobs.words else ""
        return f"hybrid: acoustic model of train_content, phone loop{words}"

    def training(self) -> dict[str, Any]:
        """Return no facts: every step uses every training utterance."""
        return {}

    def trained_on(self, state: str) -> Callable[[str], Cell]:
        """Train on speech in a state; returns the test function of speech in a state."""
        utterances, read, tuned_on = self._utterances, self._speeches.read_training(state), self._knobs.tuning
        recognizer = self._recognizer(read)
        tuning = utterances[:: max(1, len(utterances) // tuned_on)][:tuned_on]
        listener = Listener(
            utterances,
            self._phones.labels,
            recognizer.phones,
            {u.id: _posteriors(recognizer, read(u.id), u.id) for u in tuning},
        )

        def hear(tested_state: str) -> Cell:
            audio = self._speeches.read_tested(tested_state)
            posteriors = {u.id: _posteriors(recognizer, audio(u.id), u.id) for u in self.tested}
            return self._cell(posteriors, recognizer, listener)

        return hear

    def _recognizer(self, read: Read) -> ContentExtractor:
        labels = self._targets.labels
        labelled = [
            LabelledUtterance(u.id, u.speaker, mel_features(read(u.id)), labels[u.id])
            for u in self._utterances
        ]
        trained = train_content(
            labelled,
            PHONES,
            self._targets.class_phones,
            self._params.train_content,
            self._params.content_variants[self._params.transcribe.variant],
            self._params.transcribe.variant,
            self._params.base.seed,
            sink=None,
        )
        return trained.extractor

    def _cell(
        self, posteriors: Mapping[str, NDArray[np.float32]], recognizer: ContentExtractor, listener: Listener
    ) -> Cell:
        seed, replicates = self._params.base.seed, self._params.transcribe.replicates
        edits = {}
        for utterance in self.tested:
            phones = self._speeches.tested.phones(utterance.id)
            said = [phone.label for phone in phones if phone.label != SILENCE]
            decoded = decode_phones(posteriors[utterance.id], recognizer.phones)
            edits[utterance.id] = count_edits(said, decoded)
        speakers = {u.id: u.speaker for u in self.tested}
        rate = error_rate(edits, speakers, replicates=replicates, seed=seed).to_json()
        words = None
        if self._knobs.words:
            words = u_asr(listener.word_rate(posteriors, self.tested, replicates=replicates, seed=seed))
        return {"phones": u_asr(rate), "words": words}


def _posteriors(recognizer: ContentExtractor, audio: NDArray[np.float32], name: str) -> NDArray[np.float32]:
    # The variant has no noise; the source is never drawn from.
    released = recognizer.release(audio, PublicNoise(0, "probe utility", name))
    return recognizer.log_posteriors(released.value)
