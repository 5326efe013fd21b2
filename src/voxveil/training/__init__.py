"""The training loop of all models, its checkpoints and curves."""
