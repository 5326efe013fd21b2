"""Experiment tracking with MLflow; the output files stay the source of truth.

:mod:`voxveil.tracking.store` says where, :mod:`voxveil.tracking.client` makes contact,
:mod:`voxveil.tracking.stream` streams training curves while a stage runs and
:mod:`voxveil.tracking.publish.send` projects finished results. MLflow is imported only where it
is spoken to, and nothing here can fail a stage: a store that is away costs one warning.
"""
