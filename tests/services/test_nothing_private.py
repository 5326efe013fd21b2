"""A private corpus of marker names and tones: no trace of it where others look, on real servers."""

from __future__ import annotations

import base64
import os
import secrets
import subprocess
from pathlib import Path

import numpy as np
import pytest

from made_datasets import commit, make_project, run_data, shell, write_kaldi
from made_outputs import SYSTEMS, finish_outputs
from voxveil.audio.files import encode_flac
from voxveil.cli.main import main

pytestmark = pytest.mark.services

#: Part of every private name.
MARK = "Zanzibar"


def tone() -> bytes:
    """Return a second of 3 kHz as FLAC: what private audio would look like in an artifact."""
    return encode_flac(0.3 * np.sin(2 * np.pi * 3000 * np.arange(16_000) / 16_000), "tone")[0]


def traces(data: bytes, audio: bytes) -> list[str]:
    """Return which private things some bytes hold: a name, or audio as it is or as a page embeds it."""
    middle = audio[300:600]
    encoded = {base64.b64encode(audio[300 - shift : 600 - shift])[4:-4] for shift in range(3)}
    found = ["a name"] if MARK.lower().encode() in data.lower() else []
    return found + (["audio"] if middle in data or any(each in data for each in encoded) else [])


def test_traces_are_seen() -> None:
    audio = tone()
    page = b"<audio src='data:audio/flac;base64," + base64.b64encode(b"x" + audio) + b"'>"
    assert traces(b"of ZANZIBAR", audio) == ["a name"]
    assert traces(b"x" + audio, audio) == traces(page, audio) == ["audio"]
    assert traces(tone()[:200], audio) == []


def test_a_private_run_leaves_no_trace_outside(team, stack, s3, postgres, tmp_path: Path, capsys) -> None:
    audio = tone()
    corpus = {
        "public": False,
        "name": f"{MARK} clinic",
        "dataset": {"manifest_sha256": "ab" * 32, "dvc_md5": "cd"},
    }
    root = finish_outputs(tmp_path / "run", SYSTEMS, corpus=corpus, mark=MARK, samples=False)
    private = root / "outputs/anonymize/anon/released"
    (private / f"{MARK}.flac").write_bytes(audio)
    assert traces((private / "ledger.json").read_bytes(), audio) == ["a name"]
    capsys.readouterr()
    assert main(["track", "sync", "--root", str(root)]) == 0
    said = capsys.readouterr()
    seen = {"what the command says": (said.out + said.err).encode()}
    # Every object of MLflow's bucket, its name and its content.
    pages = s3.client().get_paginator("list_objects_v2").paginate(Bucket="mlflow")
    for item in (item for page in pages for item in page.get("Contents", ())):
        body = s3.client().get_object(Bucket="mlflow", Key=item["Key"])["Body"].read()
        seen[f"object {item['Key']}"] = item["Key"].encode() + body
    # The whole database, the logs of the servers, the report.
    url = postgres.url.replace("+psycopg2", "")
    dump = [str(postgres.tools() / "pg_dump"), "--dbname", url]
    seen["the database"] = subprocess.run(dump, capture_output=True, check=True).stdout
    for path in [*stack.folder.rglob("*.log"), *(root / "outputs/report").rglob("*")]:
        if path.is_file():
            seen[str(path)] = path.name.encode() + path.read_bytes()
    assert len(seen) > 20 and any("report/index.html" in name for name in seen)
    assert b"private corpus" in seen["the database"]
    assert {name: found for name, data in seen.items() if (found := traces(data, audio))} == {}


def test_a_private_dataset_shows_no_name_in_the_listing_of_its_bucket(
    s3, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in s3.environment.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("DVC_SITE_CACHE_DIR", str(tmp_path / "site"))
    project, bucket = make_project(tmp_path / "project"), f"speech-{secrets.token_hex(4)}"
    monkeypatch.chdir(project)
    remote = ["init", "--remote", f"s3://{bucket}/voxveil", "--endpoint", os.environ["AWS_ENDPOINT_URL"]]
    assert run_data(capsys, *remote)[0] == 0
    corpus = write_kaldi(tmp_path / "in", {f"{MARK}-{n}": f"{MARK}-speaker" for n in range(3)})
    (corpus / f"{MARK}.flac").write_bytes(tone())
    assert run_data(capsys, "add", "clinic", str(corpus), "--private")[0] == 0
    commit(project, "one")
    shell(project, "dvc", "push")
    listed = s3.client().list_objects_v2(Bucket=bucket)
    keys = [item["Key"] for item in listed["Contents"]]
    assert len(keys) >= 8 and not [key for key in keys if traces(key.encode(), tone())]
