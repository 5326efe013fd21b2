"""Attackers, one module per kind, and their registry."""
