"""Speaker embeddings, the public pool of voices, and selection of a target voice."""
