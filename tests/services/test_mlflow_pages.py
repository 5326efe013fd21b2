"""MLflow's pages in a browser: the table of runs, the comparison, and privacy against epsilon."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from made_browser import Browser
from voxveil.results.comparison.run_results import RunResults
from voxveil.tracking.client import connect
from voxveil.tracking.find_runs import compare_url
from voxveil.tracking.publish.send import publish
from voxveil.tracking.store import resolve_store

pytestmark = pytest.mark.services


def test_runs_are_listed_compared_and_plotted(
    team, sweep: dict[str, Path], chromium: str, tmp_path: Path
) -> None:
    pictures = Path(os.environ.get("VOXVEIL_SCREENSHOTS") or tmp_path)
    pictures.mkdir(parents=True, exist_ok=True)
    store = resolve_store()
    for name, root in sweep.items():
        publish(root / "outputs/evaluate", root / "outputs/report", experiment=name, store=store)
    tracker = connect(store)
    systems = tracker.find(system="anon_dp")
    runs = [RunResults("", "", (), None, run.info.run_id, tracker.experiment_id) for run in systems]
    user = (team.settings.admin, team.settings.admin_password)
    with Browser(chromium, tmp_path / "profile", user) as browser:
        page = f"{store.uri}/#/experiments/{tracker.experiment_id}/runs"
        shown = browser.open(page, *(f"voxveil {name}" for name in sweep))
        assert "embedded" in shown
        assert len(browser.picture(pictures / "mlflow-runs.png")) > 20_000
        # Every child's promise and figures side by side.
        shown = browser.open(compare_url(store, runs), "Comparing 3 Runs", "privacy/epsilon_content")
        for text in ("1 per vector (laplace_l1, L1 sensitivity 2)", "privacy/eer", "data_revision"):
            assert text in shown
        assert len(browser.picture(pictures / "mlflow-comparison.png")) > 20_000
        browser.click("Scatter Plot")
        browser.wait("X-axis:")
        browser.choose(0, "privacy/epsilon_content")
        browser.choose(1, "privacy/identification_rate")
        browser.wait("privacy/epsilon_content", "privacy/identification_rate")
        drawn = "[...document.querySelectorAll('.js-plotly-plot')].map(plot => [...plot.data[0].x])[0]"
        browser.wait_for(f"({drawn} || []).length === 3")
        assert sorted(map(float, browser.evaluate(drawn))) == [1, 10, 100]
        (parent,) = [run for run in tracker.find(role="run") if run.data.tags["voxveil.exp"] == "eps-1"]
        titles = browser.evaluate("[...document.querySelectorAll('.infolayer text')].map(e => e.textContent)")
        assert {"privacy/epsilon_content", "privacy/identification_rate"} <= set(titles)
        assert len(browser.picture(pictures / "mlflow-scatter.png")) > 20_000
        # The description leads to the report, which opens where it is.
        run = f"{store.uri}/#/experiments/{tracker.experiment_id}/runs/{parent.info.run_id}"
        browser.open(run, "Report, with audio where the corpus is public")
        assert len(browser.picture(pictures / "mlflow-run.png")) > 20_000
        link = (
            "[...document.querySelectorAll('a')].filter(a => a.innerText.startsWith('Report, with'))[0].href"
        )
        browser.open(browser.evaluate(link), "index.html")
        browser.wait_for("[...document.querySelectorAll('iframe')].length > 0")
        assert len(browser.picture(pictures / "mlflow-report.png")) > 20_000
        assert browser.errors == []
