"""Shared models: weights in S3 or DVC, a pointer with checksum in the MLflow registry.

:mod:`addresses` reads what an option or parameter names, :mod:`fetching` resolves it and fills the cache,
:mod:`contents` tells bundles from imported models, :mod:`storing` and :mod:`registering` write a version. A
model is known by its digest, the SHA-256 of its ``SHA256SUMS``.
"""
