"""Anonymization of recordings: find them, release them with a bundle, write ledger and outputs."""
