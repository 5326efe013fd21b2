"""From released features to speech: acoustic model, source, vocoder, and what joins them."""
