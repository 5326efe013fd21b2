"""Output tokens of the recognizer: characters, or subwords learnt by SentencePiece.

Both are learnt from the training transcripts alone, spelt by
:func:`voxveil.utility.transcripts.normalize_words`.
Kudo and Richardson, "SentencePiece", EMNLP 2018; Kudo, "Subword regularization" (unigram), ACL 2018.
"""

from __future__ import annotations

import io
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from voxveil.runtime.atomic import write_bytes
from voxveil.runtime.errors import InputError, optional_module
from voxveil.utility.transcripts import normalize_words

__all__ = ["BEGIN", "BLANK", "END", "Tokens", "learn_tokens"]

#: CTC's blank, which also fills short rows; the first token of a decoder; the last one.
BLANK, BEGIN, END = range(3)
#: Number of the first token that is text.
_FIRST = 3
#: SentencePiece's model: a protocol buffer.
_FILE = "tokens.model"


class Tokens:
    """Spells words as numbers and back; numbers below 3 are marks, not text.

    Args:
        characters: The characters, the space between words among them.
        pieces: SentencePiece's model in place of characters.
    """

    def __init__(self, characters: Sequence[str] = (), pieces: bytes = b"") -> None:
        self._characters = tuple(characters)
        self._number = {character: index for index, character in enumerate(self._characters, _FIRST)}
        self._pieces = pieces
        self._processor = _processor(pieces) if pieces else None

    def __len__(self) -> int:
        """Return the number of tokens, marks included."""
        return _FIRST + (int(self._processor.get_piece_size()) if self._processor else len(self._characters))

    @property
    def kind(self) -> str:
        """``characters`` or ``pieces``."""
        return "pieces" if self._processor else "characters"

    def encode(self, text: str) -> list[int]:
        """Return the tokens of a transcript without unknown characters."""
        words = " ".join(normalize_words(text))
        if self._processor:
            found = self._processor.encode(words)
            return [_FIRST + int(piece) for piece in found if piece != self._processor.unk_id()]
        return [self._number[character] for character in words if character in self._number]

    def decode(self, numbers: Iterable[int]) -> str:
        """Return the words that tokens spell, normalized; marks are passed over."""
        text = [int(number) - _FIRST for number in numbers if number >= _FIRST]
        if self._processor:
            spelt = self._processor.decode(text)
        else:
            spelt = "".join(self._characters[index] for index in text)
        return " ".join(normalize_words(spelt))

    def save(self, folder: Path) -> dict[str, Any]:
        """Write the subword model, if any, to a file; return the part for ``model.json``."""
        if not self._processor:
            return {"characters": list(self._characters)}
        write_bytes(Path(folder) / _FILE, self._pieces)
        return {"pieces": _FILE}

    @classmethod
    def load(cls, folder: Path, content: Any, name: str) -> Tokens:
        """Read tokens from the ``tokens`` entry of a ``model.json``.

        Args:
            folder: Where the model lies.
            content: The entry.
            name: What to call the file in an error.

        Raises:
            InputError: The entry or the file beside it is none.
        """
        characters = content.get("characters") if isinstance(content, dict) else None
        if isinstance(characters, list) and all(isinstance(c, str) and len(c) == 1 for c in characters):
            return cls(characters)
        if not isinstance(content, dict) or content.get("pieces") != _FILE:
            raise InputError(f"{name}: tokens must be characters or pieces: {_FILE}")
        path = Path(folder) / _FILE
        if not path.is_file():
            raise InputError(f"{path}: no such file")
        data = path.read_bytes()
        if not data:
            raise InputError(f"{path}: empty")
        try:
            return cls(pieces=data)
        except (RuntimeError, ValueError, TypeError) as error:
            raise InputError(
                f"{path}: not a SentencePiece model ({' '.join(str(error).split())[:100]})"
            ) from None


def learn_tokens(texts: Sequence[str], pieces: int) -> Tokens:
    """Learn tokens from training transcripts.

    Args:
        texts: The transcripts.
        pieces: Units of a SentencePiece unigram model at most; 0 = one token for each character.

    Raises:
        InputError: No transcript has a word, or there is too little text for pieces.
    """
    lines = [" ".join(normalize_words(text)) for text in texts]
    characters = sorted({character for line in lines for character in line} | {" "})
    if not any(lines):
        raise InputError("no training transcript has a word; a recognizer of words needs transcripts")
    if not pieces:
        return Tokens(characters)
    if pieces <= len(characters) + 1:
        raise InputError(
            f"asr.pieces: {pieces} pieces for {len(characters)} characters; must be more, or 0 for characters"
        )
    module = optional_module("sentencepiece", "research")
    model = io.BytesIO()
    try:
        module.SentencePieceTrainer.train(
            sentence_iterator=iter(line for line in lines if line),
            model_writer=model,
            model_type="unigram",
            vocab_size=pieces,
            # Little text has fewer pieces than asked for.
            hard_vocab_limit=False,
            character_coverage=1.0,
            # Sums of several threads would depend on their order.
            num_threads=1,
            bos_id=-1,
            eos_id=-1,
            minloglevel=2,
        )
    except RuntimeError as error:
        raise InputError(f"asr.pieces: cannot be learnt ({' '.join(str(error).split())[:120]})") from None
    return Tokens(pieces=model.getvalue())


def _processor(model: bytes) -> Any:
    return optional_module("sentencepiece", "research").SentencePieceProcessor(model_proto=model)
