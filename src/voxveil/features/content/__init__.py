"""Content: the acoustic model whose noisy bottleneck carries what was said."""
