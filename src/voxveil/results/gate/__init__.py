"""Promotion gate: decides, with reasons, whether a newly trained system replaces the one in use.

:mod:`evidence` reads what was measured and compares two systems on the same trials,
:mod:`decision` decides, and does nothing else.
"""
