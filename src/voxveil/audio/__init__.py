"""Audio in and out, and the frame grid every feature shares."""
