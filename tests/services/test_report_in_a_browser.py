"""The report page opens in a browser, at desktop and phone width, and asks the network for nothing."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from made_outputs import SYSTEMS, evaluate, make_outputs
from voxveil.stages.run import run_stage

pytestmark = pytest.mark.services


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("page")
    make_outputs(root, SYSTEMS)
    for name in SYSTEMS:
        evaluate(root, name)
    out = root / "outputs"
    inputs = {"metrics": out / "evaluate", "samples": out / "samples"}
    run_stage("report", root / "params.yaml", inputs, {"report": out / "report"})
    return out / "report/index.html"


def browse(chromium: str, page: Path, folder: Path, *options: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [
            chromium, "--headless", "--no-sandbox", "--disable-gpu", "--no-first-run",
            "--disable-background-networking", "--disable-component-update", "--disable-sync",
            "--host-resolver-rules=MAP * ~NOTFOUND", f"--user-data-dir={folder}",
            "--enable-logging=stderr", "--virtual-time-budget=4000", *options, page.as_uri(),
        ],
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )  # fmt: skip


def test_the_page_holds_every_system_and_no_script_errors(chromium: str, page: Path, tmp_path: Path) -> None:
    result = browse(chromium, page, tmp_path, "--dump-dom")
    for name in SYSTEMS:
        assert name in result.stdout
    assert "CONSOLE" not in result.stderr
    source = page.read_text()
    assert 'src="http' not in source
    assert 'href="http' not in source.replace('href="https://doi.org', "").replace(
        'href="https://arxiv.org', ""
    )


@pytest.mark.parametrize(("name", "size"), [("desktop", "1280,1600"), ("phone", "390,1600")])
def test_the_page_is_drawn(chromium: str, page: Path, tmp_path: Path, name: str, size: str) -> None:
    keep = Path(os.environ.get("VOXVEIL_SCREENSHOTS") or tmp_path)
    shot = keep / f"report-{name}.png"
    browse(chromium, page, tmp_path / "profile", f"--window-size={size}", f"--screenshot={shot}")
    data = shot.read_bytes()
    width = int.from_bytes(data[16:20], "big")
    assert width == int(size.partition(",")[0])
    assert len(data) > 20_000
