"""What is extracted from speech before release: pitch, content, and the voices of speakers."""
