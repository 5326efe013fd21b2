"""Speech synthesis from released features: acoustic model, excitation source, vocoder."""
