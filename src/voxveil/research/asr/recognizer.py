"""Decoding with a trained conformer: joint CTC and attention beam search, or greedy CTC.

The beam search is SpeechBrain's: the decoder's score of each token and that of CTC's prefixes, weighted,
divided by the length (Watanabe et al., 2017). No language model. Each utterance is decoded by itself, without
padding, so that what is decoded beside it cannot change it.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from voxveil.audio.frames import SAMPLE_RATE
from voxveil.research.asr.network import AsrNetwork, AsrSize, centred_mel, quiet
from voxveil.research.asr.tokens import BEGIN, BLANK, END, Tokens
from voxveil.runtime.atomic import read_description, write_bytes, write_json
from voxveil.runtime.errors import InputError
from voxveil.training.checkpoint import load_weights, model_bytes
from voxveil.training.loop import device
from voxveil.training.placeholders import remove_placeholders

__all__ = ["LONGEST_SECONDS", "Recognizer", "collapse"]

_FORMAT = 1
_KIND = "conformer"

#: Longest utterance that is decoded; the decoder has positions for 2,500 tokens, one per 40 ms.
LONGEST_SECONDS = 99.0


class Recognizer:
    """A network and its tokens, ready to transcribe."""

    def __init__(self, network: AsrNetwork, tokens: Tokens) -> None:
        self._network, self._tokens = network.to(device()).eval(), tokens
        self._searchers: dict[tuple[int, float], Any] = {}

    @classmethod
    def load(cls, folder: Path) -> Recognizer:
        """Read ``model.json``, ``model.safetensors`` and, with pieces, ``tokens.model``.

        Raises:
            InputError: Naming the file that is missing, of another kind or does not fit.
        """
        path = Path(folder) / "model.json"
        content = read_description(path, _KIND, _KIND)
        tokens = Tokens.load(folder, content.get("tokens"), str(path))
        try:
            network = AsrNetwork(AsrSize(**content["sizes"]))
        except (KeyError, TypeError, ValueError, AssertionError, RuntimeError) as error:
            raise InputError(f"{path}: its sizes do not describe a {_KIND} ({error})") from None
        if network.size.tokens != len(tokens):
            raise InputError(f"{path}: {network.size.tokens} outputs for {len(tokens)} tokens")
        load_weights(network, Path(folder) / "model.safetensors")
        return cls(network, tokens)

    def save(self, folder: Path, facts: Mapping[str, object] | None = None) -> None:
        """Write the model into an existing folder.

        Args:
            folder: Where to.
            facts: Further entries of ``model.json``, e.g. what it was trained on.
        """
        write_bytes(Path(folder) / "model.safetensors", model_bytes(self._network))
        described = {"tokens": self._tokens.save(folder), "sizes": self.size.to_json()}
        write_json(
            Path(folder) / "model.json", {**(facts or {}), **described, "format": _FORMAT, "kind": _KIND}
        )

    @property
    def size(self) -> AsrSize:
        """Sizes of the network."""
        return self._network.size

    @property
    def tokens(self) -> Tokens:
        """Output tokens."""
        return self._tokens

    def transcribe(
        self, audio: NDArray[np.float32], name: str = "audio", *, beam: int = 10, ctc_weight: float = 0.4
    ) -> str:
        """Return the normalized words of one utterance, maybe none.

        Args:
            audio: (n,) 16 kHz mono in [-1, 1].
            name: What to call it in an error.
            beam: Hypotheses that are followed; 0 = greedy CTC.
            ctc_weight: Share of CTC in the beam search's score, in [0, 1).

        Raises:
            InputError: It is empty, not one-dimensional, not finite, or longer than :data:`LONGEST_SECONDS`.
        """
        if audio.ndim != 1 or not len(audio) or not np.isfinite(audio).all():
            raise InputError(f"{name}: audio must be (samples,) of finite numbers, at least 1")
        if len(audio) > LONGEST_SECONDS * SAMPLE_RATE:
            raise InputError(
                f"{name}: {len(audio) / SAMPLE_RATE:.0f} s, a recognizer hears {LONGEST_SECONDS:g} s at most"
            )
        clip = torch.from_numpy(np.asarray(audio, np.float32))[None].to(device())
        with torch.inference_mode():
            mel, frames = centred_mel(clip, torch.tensor([clip.shape[1]], device=clip.device))
            encoded, _ = self._network.encode(self._network.normalized(mel, frames), frames)
            if not beam:
                best = self._network.ctc_log_probs(encoded)[0].argmax(dim=1)
                return self._tokens.decode(collapse(best.tolist()))
            with quiet():
                found, *_ = self._searcher(beam, ctc_weight)(encoded, torch.ones(1, device=clip.device))
        return self._tokens.decode(found[0])

    def _searcher(self, beam: int, ctc_weight: float) -> Any:
        key = beam, ctc_weight
        if key not in self._searchers:
            self._searchers[key] = _beam_search(self._network, *key)
        return self._searchers[key]


def collapse(path: list[int]) -> list[int]:
    """Return the tokens of a CTC path: repeats merged, blanks removed."""
    return [one for one, last in zip(path, [BLANK, *path], strict=False) if one != last and one != BLANK]


def _beam_search(network: AsrNetwork, beam: int, ctc_weight: float) -> Any:
    with quiet():
        from speechbrain.decoders.scorer import CTCScorer, ScorerBuilder
        from speechbrain.decoders.seq2seq import S2STransformerBeamSearcher

    remove_placeholders()
    scorer = None
    if ctc_weight:
        ctc = CTCScorer(network.ctc, blank_index=BLANK, eos_index=END)
        scorer = ScorerBuilder(full_scorers=[ctc], weights={"ctc": ctc_weight})
    return S2STransformerBeamSearcher(
        modules=[network.transformer, network.next],
        bos_index=BEGIN,
        eos_index=END,
        min_decode_ratio=0.0,
        max_decode_ratio=1.0,
        beam_size=beam,
        using_eos_threshold=False,
        length_normalization=True,
        scorer=scorer,
    ).eval()
