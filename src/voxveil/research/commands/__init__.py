"""Commands of the extra ``research``: ``voxveil probe`` and ``voxveil reproduce``."""
