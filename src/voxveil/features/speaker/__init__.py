"""Speaker embeddings, the public pool of voices and the choice of a target."""
