"""Words and phones from released content alone: lexicon, language models, and the search through them."""
