"""Files on disk: atomic writes, finished outputs, tar shards."""
