"""Feature-level experiments: what one release of pitch or of content carries, of words and of the speaker.

One probe measures one variant in one draw of its noise, on public speech, and writes ``probe.json``;
``experiments/features/dvc.yaml`` makes a stage of each and gathers them.
"""
