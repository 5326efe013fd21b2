"""Storage, processes and other infrastructure: atomic writes, output digests, shards, S3, Git, seeding."""
