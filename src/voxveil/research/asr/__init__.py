"""The full-size recognizer: a conformer that spells, by CTC and attention, what it hears."""
