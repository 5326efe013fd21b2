"""What was registered as private is not prepared as public."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from made_corpora import write_corpus
from voxveil.config.model import PrepareParams
from voxveil.corpus.opening import open_source
from voxveil.errors import InputError


def test_a_private_dataset_needs_prepare_public_false(tmp_path: Path) -> None:
    corpus = write_corpus(tmp_path / "clinic", speakers=1)
    (tmp_path / "clinic.manifest.tsv").write_text("")
    for public in (True, False):
        (tmp_path / "clinic.json").write_text(json.dumps({"public": public}))
        assert open_source(PrepareParams(source=str(corpus), public=False), 1).clips
        if public:
            assert open_source(PrepareParams(source=str(corpus), public=True), 1).clips
            continue
        with pytest.raises(InputError, match="prepare.public: must be false, dataset .*clinic is private"):
            open_source(PrepareParams(source=str(corpus), public=True), 1)
