"""Which folders prepare.source may name."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from voxveil.config.model import PrepareParams
from voxveil.corpus.opening import open_source
from voxveil.runtime.errors import InputError


def test_a_relative_source_must_be_tracked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    params = replace(PrepareParams(), source="data/speech")
    (tmp_path / "data" / "speech").mkdir(parents=True)
    with pytest.raises(InputError, match="prepare.source: data/speech is relative and DVC does not track it"):
        open_source(params, 1)
    (tmp_path / "data" / "speech.dvc").write_text("outs: []\n")
    with pytest.raises(InputError, match="data/speech: not a corpus"):
        open_source(params, 1)
    (tmp_path / "data" / "speech.dvc").rename(tmp_path / "data.dvc")
    with pytest.raises(InputError, match="data/speech: not a corpus"):
        open_source(params, 1)
    with pytest.raises(InputError, match="speech: not a corpus"):
        open_source(replace(params, source=str(tmp_path / "data" / "speech")), 1)
