"""Dataset versions: registered by a reviewable manifest, stored by DVC, found through Git.

Dataset NAME is the folder ``data/NAME`` (tracked by ``data/NAME.dvc``) with two files that Git
keeps and people review: ``data/NAME.manifest.tsv`` and ``data/NAME.json``.
"""
