"""F0 by YAAPT, every frame of a recording computed at once."""

from voxveil.features.pitch.yaapt.tracker import F0_MAX, F0_MIN, PERIODICITY, track_f0

__all__ = ["F0_MAX", "F0_MIN", "PERIODICITY", "track_f0"]
