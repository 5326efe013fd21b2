"""Runs side by side: :mod:`sources` finds them, :mod:`paired` and :mod:`differences` compare,
:mod:`table` and :mod:`render` show.
"""
