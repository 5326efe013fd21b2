"""Write the files beside this script with the code of commit e551a34, the last before the move into rooms.

It imports modules by their names of that commit, so it runs with no other. README.md has the commands.
Usage: ``python tests/old_files/write.py TARGET`` with ``src`` and ``tests`` of that commit on PYTHONPATH.
"""

from __future__ import annotations

import gzip
import io
import os
import shutil
import sqlite3
import sys
import tarfile
import tempfile
from pathlib import Path

import soundfile

#: Stands in the dump of the database and in artifacts where the folder of the project stood.
PROJECT = "@PROJECT@"
PITCH = {
    "naive": {"mechanism": "naive", "epsilon": 10.0, "channels": 1},
    "contour": {
        "mechanism": "contour",
        "epsilon": 1.0,
        "contour": 2,
        "voicing": 2,
        "means": [0.0, 0.0, 0.0, 0.0],
        "variances": [1.0, 1.0, 1.0, 1.0],
    },
}
CONTENT = {
    "sharp": {"mechanism": "sharp_laplace", "epsilon": 10.0},
    "response": {"mechanism": "randomized_response", "epsilon": 1.0, "every": 2},
    "subset": {"mechanism": "subset_selection", "epsilon": 1.0},
    "gauss": {"mechanism": "gaussian", "epsilon": 0.0, "rho": 0.01},
}
#: What MLflow keeps of a run that is needed to compare it; figures and pages are left out for their size.
KEPT = ("results.json", "summary.json", "bundle.json", "SHA256SUMS", "pointer.json", "losses.json")


def write_bundles(target: Path) -> None:
    """Write a bundle of every kind of system, pitch, content, vocoder and target."""
    from voxveil.bundle import write_bundle
    from voxveil.storage.atomic import read_json, write_json
    from voxveil.storage.done import finish

    from made_speech import CORPUS, made_bundles, write_speaker_model
    from voxveil.config.model import SystemParams
    from voxveil.config.networks import TrainVocoderParams
    from voxveil.synthesis.vocoders import build_vocoder
    from voxveil.training.checkpoint import write_trained
    from voxveil.training.loop import seeded

    made_bundles(target)
    models = target / "models"
    for part, variants, source in (("pitch", PITCH, "plain"), ("content", CONTENT, "dp")):
        for name, facts in variants.items():
            shutil.copytree(models / part / source, models / part / name)
            path = models / part / name / "model.json"
            write_json(path, {**read_json(path), **facts})
    for kind in ("hn_sinc", "nsf_gan"):
        sizes = {"hn_sinc": 8, "nsf_gan": 16}
        params = TrainVocoderParams(
            kind=kind, channels=sizes[kind], width=8, harmonic_blocks=1, noise_blocks=1, layers=1
        )
        with seeded(1, kind):
            vocoder = build_vocoder(params)
        (models / kind).mkdir()
        write_trained(models / kind, vocoder, vocoder.describe(), [{"step": 1, "loss": 1.0}], {})
    pool = (models / "speaker/pool.npz").read_bytes()
    write_speaker_model(models / "speaker")
    (models / "speaker/pool.npz").write_bytes(pool)

    systems = {
        "naive": (SystemParams(pitch="naive", content="sharp"), "vocoder"),
        "contour": (SystemParams(pitch="contour", content="response"), "vocoder"),
        "subset": (SystemParams(pitch="dp", content="subset"), "hn_sinc"),
        "gauss": (SystemParams(pitch="dp", content="gauss"), "nsf_gan"),
        "farthest": (SystemParams(target="farthest", target_sex="cross"), "vocoder"),
    }
    facts = {key: CORPUS[key] for key in ("name", "synthetic", "public", "revision")}
    for name, (system, vocoder_name) in systems.items():
        parts = {
            "pitch": models / "pitch" / system.pitch,
            "content": models / "content" / system.content,
            "speaker": models / "speaker",
            "vocoder": models / vocoder_name,
            "synthesis": models / "synthesis",
        }
        write_bundle(target / "bundles" / name, name, system, parts, facts)
        finish(target / "bundles" / name, "bundle", name)


def write_releases(work: Path, bundles: Path) -> None:
    """Anonymize a recording by three systems and one of them twice: ledgers in ``out``, a register."""
    from made_speech import speak
    from voxveil.cli import main

    soundfile.write(work / "a.wav", speak(120.0, 8_000)[0], 16_000)
    os.chdir(work)
    for out, system in (("dp", "anon_dp"), ("again", "anon_dp"), ("gauss", "gauss"), ("plain", "anon")):
        if main(["anonymize", "a.wav", f"out/{out}", "--model", str(bundles / system), "--threads", "1"]):
            raise SystemExit(f"{system}: was not anonymized")


def write_store(project: Path, bundle: Path) -> None:
    """Publish a finished run to an MLflow store in SQLite, and register a bundle there."""
    from voxveil.model_registry.places import S3Place
    from voxveil.model_registry.registering import register_model
    from voxveil.publish.send import publish

    from made_outputs import SYSTEMS, finish_outputs
    from voxveil.tracking.store import resolve_store

    finish_outputs(project, SYSTEMS)
    store = resolve_store({"DVC_ROOT": str(project)})
    out = project / "outputs"
    publish(out / "evaluate", out / "report", experiment="old-dusk", store=store)
    register_model(bundle, "anonymizer", S3Place("models", "old/anon_dp"), store, "champion")


def dump(project: Path) -> str:
    """Return the database of a store as SQL, its tables, what they hold and their indices."""
    with sqlite3.connect(project / "mlflow.db") as database:
        return "\n".join(database.iterdump()).replace(str(project), PROJECT) + "\n"


def pack(target: Path, folder: Path, files: list[Path]) -> None:
    """Write files of a folder into a compressed archive, without times and owners."""
    with tarfile.open(target, "w:xz", preset=9) as archive:
        for path in sorted(files):
            data = path.read_bytes()
            member = tarfile.TarInfo(path.relative_to(folder).as_posix())
            member.size = len(data)
            archive.addfile(member, io.BytesIO(data))


def main(target: Path) -> None:
    """Write everything into ``target``."""
    with tempfile.TemporaryDirectory() as scratch:
        root = Path(scratch).resolve()
        write_bundles(root)
        bundles = root / "bundles"
        pack(target / "bundles.tar.xz", bundles, [path for path in bundles.rglob("*") if path.is_file()])
        work = root / "work"
        work.mkdir()
        os.environ["VOXVEIL_LEDGER"] = str(work / "register")
        write_releases(work, bundles)
        for path in (*work.glob("out/*/ledger.json"), *work.glob("register/*.json")):
            kept = target / path.relative_to(work)
            kept.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, kept)
        project = root / "project"
        project.mkdir()
        os.chdir(project)
        write_store(project, bundles / "anon_dp")
        with (target / "mlflow.sql.gz").open("wb") as handle, gzip.GzipFile("", "wb", 9, handle, 0) as packed:
            packed.write(dump(project).encode())
        files = [path for path in (project / "mlartifacts").rglob("*") if path.name in KEPT]
        pack(target / "mlartifacts.tar.xz", project, files)


if __name__ == "__main__":
    main(Path(sys.argv[1]).resolve())
