"""The full-size speech recognizer: a conformer with joint CTC and attention decoding."""
