"""Automatic speaker identification (ASI) from released features."""
