"""Language models of words: lexicon, back-off n-grams, their estimation, PocketSphinx's packaged trigram."""
