"""Models from anywhere: bytes lie in S3 or DVC, the MLflow registry holds a pointer and a checksum.

:mod:`places` reads what ``--model`` names, :mod:`fetching` brings it into the cache, :mod:`storing` and
:mod:`registering` write a version. A model is known by its digest, the SHA-256 of its ``SHA256SUMS``.
"""
