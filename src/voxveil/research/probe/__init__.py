"""Feature-level experiments: linguistic and speaker information in released pitch or content.

One probe measures one variant in one draw of its noise, on public speech, and writes ``probe.json``;
``voxveil probe run`` makes a stage of each and gathers them, a pipeline of Kubeflow a task.
"""

__all__ = ["DRAWS"]

#: Draws of the noise per variant unless told.
DRAWS = 3
