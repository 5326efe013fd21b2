"""Decoding of words and phones from released content: lexicon, language models, search."""
