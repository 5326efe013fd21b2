"""Shared models: weights in S3 or DVC, a pointer with checksum in the MLflow registry.

:mod:`places` reads what ``--model`` names, :mod:`fetching` brings it into the cache, :mod:`storing` and
:mod:`registering` write a version. A model is known by its digest, the SHA-256 of its ``SHA256SUMS``.
"""
