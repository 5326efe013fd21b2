"""The one model of every knob: typed, strict, composed from small overlays."""

from voxveil.config.load import load_params, original_system, parse_params
from voxveil.config.model import Params, SystemParams

__all__ = ["Params", "SystemParams", "load_params", "original_system", "parse_params"]
