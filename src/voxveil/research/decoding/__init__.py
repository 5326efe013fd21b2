"""Decoding of words and phones from released content: decoding graph, search, phone model."""
