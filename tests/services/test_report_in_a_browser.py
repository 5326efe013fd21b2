"""The report page opens in a browser, at desktop and phone width, and asks the network for nothing."""

from __future__ import annotations

import base64
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from made_browser import Browser
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


@pytest.fixture(scope="module")
def browser(chromium: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    with Browser(chromium, tmp_path_factory.mktemp("browser") / "profile") as opened:
        yield opened


@pytest.fixture
def pictures(tmp_path: Path) -> Path:
    folder = Path(os.environ.get("VOXVEIL_SCREENSHOTS") or tmp_path)
    folder.mkdir(parents=True, exist_ok=True)
    return folder


#: The sum of red, green and blue of the page's ground.
BRIGHTNESS = (
    "getComputedStyle(document.body).backgroundColor.match(/\\d+/g).slice(0, 3).reduce((a, b) => a + +b, 0)"
)
SHOWN = "[...document.querySelectorAll('figure img')].filter(e => e.offsetWidth).map(e => e.className)"


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize(("name", "width"), [("desktop", 1280), ("phone", 390)])
def test_the_page_is_drawn(
    browser: Browser, page: Path, pictures: Path, name: str, width: int, scheme: str
) -> None:
    browser.call(
        "Emulation.setDeviceMetricsOverride",
        width=width,
        height=1600,
        deviceScaleFactor=1,
        mobile=width < 500,
    )
    wish = {"name": "prefers-color-scheme", "value": scheme}
    browser.call("Emulation.setEmulatedMedia", media="screen", features=[wish])
    browser.open(page.as_uri(), *SYSTEMS)
    assert len(browser.picture(pictures / f"report-{name}-{scheme}.png")) > 20_000
    # Nothing sticks out: a phone scrolls in one direction.
    assert browser.evaluate("document.documentElement.scrollWidth") <= width
    assert (browser.evaluate(BRIGHTNESS) > 600) == (scheme == "light")
    drawn = browser.evaluate(SHOWN)
    assert drawn and not [each for each in drawn if each in {"light", "dark"} - {scheme}]
    assert browser.errors == []


def test_the_page_is_printed_and_read_without_colour(browser: Browser, page: Path, pictures: Path) -> None:
    browser.call(
        "Emulation.setDeviceMetricsOverride", width=1280, height=1600, deviceScaleFactor=1, mobile=False
    )
    browser.call("Emulation.setEmulatedVisionDeficiency", type="achromatopsia")
    browser.open(page.as_uri(), *SYSTEMS)
    assert len(browser.picture(pictures / "report-without-colour.png")) > 20_000
    browser.call("Emulation.setEmulatedVisionDeficiency", type="none")
    paper = base64.b64decode(browser.call("Page.printToPDF", printBackground=False)["data"])
    assert paper.startswith(b"%PDF") and len(paper) > 20_000
    (pictures / "report.pdf").write_bytes(paper)
