"""Feature extraction before release: pitch, content, and speaker embeddings."""
