"""The image file, read as text: what must be so whatever the builder."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from voxveil.stages.registry import STAGES


@pytest.fixture(scope="module")
def dockerfile(root: Path) -> str:
    return re.sub(r"\\\n", " ", (root / "docker/Dockerfile").read_text(encoding="utf-8"))


def stages(dockerfile: str) -> dict[str, str]:
    """Return the text of each build stage by its name."""
    parts = re.split(r"^FROM (\S+) AS (\S+)$", dockerfile, flags=re.M)
    return dict(zip(parts[2::3], parts[3::3], strict=True))


def test_it_has_the_targets_that_components_name(dockerfile: str, root: Path) -> None:
    import yaml

    named = {
        yaml.safe_load((root / "components" / spec.name / "resources.yaml").read_text())["image"]
        for spec in STAGES
    }
    assert named == {"cpu", "gpu"}
    assert named <= set(stages(dockerfile))


def test_the_base_is_an_argument_and_used_everywhere(dockerfile: str) -> None:
    assert re.search(r"^ARG BASE_IMAGE=\S+:[\d.]+\S*$", dockerfile, re.M)
    bases = set(re.findall(r"^FROM (\S+)", dockerfile, re.M))
    assert bases <= {"${BASE_IMAGE}", *stages(dockerfile)}
    assert "latest" not in dockerfile
    assert not dockerfile.startswith("# syntax")


def test_containers_are_not_root_and_have_no_entrypoint(dockerfile: str) -> None:
    assert not re.search(r"^ENTRYPOINT", dockerfile, re.M)
    final = stages(dockerfile)
    assert re.search(r"^USER 1000:1000$", final["runtime"], re.M)
    for target in ("cpu", "gpu"):
        assert "USER" not in final[target]
        assert re.fullmatch(rf"\s*COPY --from=build-{target} /opt/venv /opt/venv\s*", final[target])


def test_whatever_caches_writes_to_tmp(dockerfile: str) -> None:
    """On a read-only root DVC could open no repository: its site cache is /var/tmp/dvc by default."""
    variables = dict(re.findall(r"(\w+)=(/tmp\S*)", stages(dockerfile)["runtime"]))
    assert {"HOME", "MPLCONFIGDIR", "NUMBA_CACHE_DIR", "DVC_SITE_CACHE_DIR"} <= set(variables)


def test_packages_come_from_the_locks_without_resolving(dockerfile: str) -> None:
    installs = re.findall(r"pip install [^&;]*", dockerfile)
    assert installs
    for install in installs:
        assert "--no-deps" in install or re.search(r'"pip==[\d.]+"', install), install
    for target in ("cpu", "gpu"):
        text = stages(dockerfile)[f"build-{target}"]
        assert f"-r requirements/{target}.txt" in text
        assert "pip check" in text


def test_the_cpu_lock_holds_no_torch(root: Path) -> None:
    names = [line.partition("==")[0] for line in (root / "requirements/cpu.txt").read_text().splitlines()]
    assert not {"torch", "torchaudio", "speechbrain", "espeakng-loader"} & set(names)


def test_the_builder_gets_only_what_is_copied(dockerfile: str, root: Path) -> None:
    lines = (root / ".dockerignore").read_text().splitlines()
    assert "*" in lines
    allowed = {line[1:] for line in lines if line.startswith("!")}
    copied = {
        word.split("/")[0]
        for line in re.findall(r"^COPY (?!--from)(.+)$", dockerfile, re.M)
        for word in line.split()[:-1]
    }
    assert copied == allowed
    assert ".git" not in allowed


def test_every_variable_of_ours_is_documented(root: Path) -> None:
    text = (root / "docker/README.md").read_text(encoding="utf-8")
    found = {
        name: path
        for path in (root / "src").rglob("*.py")
        for name in re.findall(r"\"(VOXVEIL_[A-Z]+)\"", path.read_text(encoding="utf-8"))
    }
    assert "VOXVEIL_LEDGER" in found
    for name, path in found.items():
        assert f"`{name}`" in text, f"{path}: {name}"
