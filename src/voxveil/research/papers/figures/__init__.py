"""Figures of the reproduced papers. Needs matplotlib."""
