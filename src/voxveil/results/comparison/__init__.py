"""Comparison of runs: paired intervals of differences, one table, and its rendering as text or Markdown."""
