"""A registered dataset is read as it was registered: its secrecy, its manifest, its version."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import pytest

from made_corpora import vowel, write_corpus
from voxveil.audio.files import encode_flac
from voxveil.config.model import PrepareParams
from voxveil.corpus.opening import dataset_version, open_source
from voxveil.runtime.errors import InputError


@pytest.fixture
def params(tmp_path: Path) -> PrepareParams:
    corpus = write_corpus(tmp_path / "clinic", speakers=1, each=2)
    files = sorted(corpus.rglob("*.flac"))
    rows = [
        f"{path.stem}\t20\tF\tpart\t1.000\t{hashlib.sha256(path.read_bytes()).hexdigest()}\n"
        for path in files
    ]
    manifest = tmp_path / "clinic.manifest.tsv"
    manifest.write_text("utterance\tspeaker\tsex\tsubset\tseconds\tsha256\n" + "".join(rows))
    (tmp_path / "clinic.json").write_text(json.dumps({"public": False}))
    return PrepareParams(source=str(corpus), manifest=str(manifest), public=False)


def changed(params: PrepareParams, **values: object) -> PrepareParams:
    return PrepareParams(**{**vars(params), **values})


def test_it_opens(params: PrepareParams) -> None:
    assert len(open_source(params, 1).clips) == 2


def test_a_private_one_needs_prepare_public_false(params: PrepareParams) -> None:
    with pytest.raises(InputError, match="prepare.public: must be false, dataset .*clinic is private"):
        open_source(changed(params, public=True), 1)
    Path(params.source).with_name("clinic.json").write_text(json.dumps({"public": True}))
    assert open_source(changed(params, public=True), 1).clips


def test_its_manifest_must_be_what_dvc_watches(params: PrepareParams) -> None:
    with pytest.raises(InputError, match="prepare.manifest: must be .*clinic.manifest.tsv"):
        open_source(changed(params, manifest=PrepareParams().manifest), 1)


def test_its_version_is_named_by_hash_and_dvc(params: PrepareParams) -> None:
    assert dataset_version(PrepareParams()) is None
    manifest = Path(params.manifest)
    summary = manifest.with_name("clinic.json")
    digest = hashlib.sha256(manifest.read_bytes()).hexdigest()
    summary.write_text(json.dumps({"public": False, "manifest_sha256": digest, "dvc_md5": "ab.dir"}))
    assert dataset_version(params) == {"manifest_sha256": digest, "dvc_md5": "ab.dir"}
    summary.write_text(json.dumps({"public": False, "manifest_sha256": "0" * 64, "dvc_md5": "ab.dir"}))
    with pytest.raises(InputError, match="clinic.json: is of another version than .*clinic.manifest.tsv"):
        dataset_version(params)


def test_data_of_another_version_are_refused(params: PrepareParams) -> None:
    last = sorted(Path(params.source).rglob("*.flac"))[-1]
    content = last.read_bytes()
    last.write_bytes(encode_flac(vowel(6000, 200.0), "x")[0])
    with pytest.raises(InputError, match=f"{last.name} is of another version; 'dvc checkout"):
        open_source(params, 1)
    last.unlink()
    with pytest.raises(InputError, match="utterance 20-7-0001 is not in"):
        open_source(params, 1)
    last.write_bytes(content)
    last.with_name("20-7-0009.flac").write_bytes(content)
    with pytest.raises(InputError, match="20-7-0009.flac is of another version"):
        open_source(params, 1)
