"""Privacy metrics of attack scores: how much of the speaker's identity they reveal.

One metric per file; :mod:`voxveil.metrics.suite` runs them all and
:mod:`voxveil.metrics.catalogue` lists them with units and meaning. Nothing here needs
more than numpy, scipy and voice-anonymization-legal-eval; only
:mod:`voxveil.metrics.plots` imports matplotlib.
"""
