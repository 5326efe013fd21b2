"""Content features: bottleneck vectors of an acoustic model, released with noise."""
