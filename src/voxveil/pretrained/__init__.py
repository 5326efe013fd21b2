"""Pretrained models of others: import into one folder format, checks, and loading by architecture.

:mod:`sources` finds the files (a folder, an installed package, a hub at a pinned revision), :mod:`importing`
converts them once, :mod:`folder` reads and checks the result, and the modules named in :mod:`architectures`
load it.
"""
