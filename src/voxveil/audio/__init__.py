"""Audio input and output, and the frame grid shared by all features."""
