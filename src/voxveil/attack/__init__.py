"""Speaker re-identification attacks: trained on anonymized public speech, they link private speakers."""
