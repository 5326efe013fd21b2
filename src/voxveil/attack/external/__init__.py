"""Attacks on anonymized speech of any origin: layouts, steps, results."""
