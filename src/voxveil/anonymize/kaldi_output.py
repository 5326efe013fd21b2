"""The tables of a Kaldi data folder beside anonymized speech, as VoicePrivacy's evaluation reads them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from voxveil.corpus.kaldi import read_table
from voxveil.runtime.atomic import write_bytes, write_text

__all__ = ["write_tables"]

#: Tables with a line for each utterance.
_PER_UTTERANCE = ("utt2spk", "utt2gender", "text")
#: Written anew, or not true of padded outputs.
_OWN = ("wav.scp", "spk2utt", "utt2dur", "utt2num_samples", "utt2num_frames", *_PER_UTTERANCE)


def write_tables(source: Path, folder: Path, outputs: Mapping[str, Path]) -> list[str]:
    """Write ``wav.scp`` and the tables of ``source`` for what was anonymized; return their names.

    Args:
        source: The data folder that was anonymized.
        folder: The data folder with the outputs.
        outputs: File of each utterance; paths stand in ``wav.scp`` as they are given here.
    """
    speakers = read_table(source / "utt2spk")
    members: dict[str, list[str]] = {}
    for utterance in sorted(outputs):
        members.setdefault(speakers[utterance][0], []).append(utterance)
    tables = {
        "wav.scp": [f"{utterance} {outputs[utterance]}" for utterance in sorted(outputs)],
        "spk2utt": [f"{speaker} {' '.join(members[speaker])}" for speaker in sorted(members)],
    }
    for name in _PER_UTTERANCE:
        if (source / name).is_file():
            rows = read_table(source / name, blank=True)
            tables[name] = [f"{item} {rows[item][0]}".rstrip() for item in sorted(outputs) if item in rows]
    for name, lines in tables.items():
        write_text(folder / name, "".join(f"{line}\n" for line in lines))
    copied = []
    for path in sorted(source.iterdir()):
        # Trials, enrolments and sexes are the same for anonymized speech.
        plain = path.is_file() and not path.name.startswith(".") and path.suffix in ("", ".txt")
        if plain and path.name not in _OWN:
            write_bytes(folder / path.name, path.read_bytes())
            copied.append(path.name)
    return sorted([*tables, *copied])
