"""The adversaries: learn from anonymized public speech, then link private speakers."""
