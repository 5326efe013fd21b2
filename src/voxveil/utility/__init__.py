"""Utility: what a recogniser still understands of the released speech."""
