"""Utility of released speech: word and phone error rates, intelligibility, pitch correlation."""
