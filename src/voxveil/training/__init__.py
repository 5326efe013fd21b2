"""The one training loop, its checkpoints and curves."""
