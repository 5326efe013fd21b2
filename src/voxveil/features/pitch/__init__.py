"""Pitch: F0 tracking, the unit scale, and the differentially private F0 extractor."""
