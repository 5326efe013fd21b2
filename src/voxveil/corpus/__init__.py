"""Corpora, splits and trial lists."""
