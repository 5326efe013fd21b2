"""Removal of placeholder modules that importing SpeechBrain leaves in ``sys.modules``."""

from __future__ import annotations

import sys

__all__ = ["remove_placeholders"]


def remove_placeholders() -> None:
    """Remove SpeechBrain's placeholders for renamed modules from ``sys.modules``; call it after an import.

    They raise ImportError when anybody walking over all modules asks for an attribute (inspect does, and so
    does Hypothesis).
    """
    for name, module in list(sys.modules.items()):
        if name.startswith("speechbrain.") and type(module).__name__ == "DeprecatedModuleRedirect":
            del sys.modules[name]
