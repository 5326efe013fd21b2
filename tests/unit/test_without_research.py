"""The product works where the package of the extra ``research`` is absent, and says what it lacks."""

from __future__ import annotations

import dataclasses
import subprocess
import sys
from pathlib import Path

import pytest

from voxveil.cli.main import main
from voxveil.config.load import read_mapping
from voxveil.config.model import Params
from voxveil.kubeflow.steps.registry import all_steps
from voxveil.runtime import extensions

LACKING = "voxveil.research is not installed; it comes with: pip install 'voxveil[research]'"
IMAGES = "tests/pipelines/images.lock.json"
COMMANDS = {"probe", "reproduce"}
STEPS = {"probe_content", "probe_gather", "probe_pitch"}


@pytest.fixture(scope="module")
def product(root: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder that holds every room of the package but research, to be put on PYTHONPATH."""
    folder = tmp_path_factory.mktemp("product")
    (folder / "voxveil").mkdir()
    for path in (root / "src/voxveil").iterdir():
        if path.name not in ("research", "__pycache__"):
            (folder / "voxveil" / path.name).symlink_to(path)
    return folder


def run(product: Path, folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run ``voxveil`` without research in a folder."""
    before = f"import sys; sys.path.insert(0, {str(product)!r}); from voxveil.cli.main import main"
    code = f"{before}; sys.exit(main({list(arguments)!r}))"
    return subprocess.run([sys.executable, "-c", code], cwd=folder, capture_output=True, text=True)


@pytest.fixture
def checkout(root: Path, tmp_path: Path) -> Path:
    """Return a checkout without params.yaml."""
    for name in ("components", "params", "pipelines", "tests"):
        (tmp_path / name).symlink_to(root / name)
    return tmp_path


def test_commands_and_steps_are_registered() -> None:
    assert extensions.registered(extensions.COMMANDS).keys() == COMMANDS
    assert extensions.registered(extensions.STEPS).keys() == STEPS
    assert {spec.name for spec in all_steps()} > STEPS


def test_help_imports_no_extension() -> None:
    code = (
        "import sys\nfrom voxveil.cli.main import main\ntry: main(['--help'])\nexcept SystemExit: pass\n"
        "print([name for name in sys.modules if name.startswith('voxveil.research.')])"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "what released features carry" in result.stdout
    assert "table or figure of the papers" in result.stdout
    assert result.stdout.splitlines()[-1] == "['voxveil.research.commands']"


def test_help_says_which_extra_a_command_comes_with(product: Path, tmp_path: Path) -> None:
    result = run(product, tmp_path, "--help")
    assert result.returncode == 0, result.stderr
    text = " ".join(result.stdout.split())
    assert text.count("is not installed; it comes with: pip install 'voxveil[research]'") == len(COMMANDS)
    assert "run one stage of the pipeline" in text


@pytest.mark.parametrize("arguments", [["probe", "run", "features/"], ["reproduce", "list"]])
def test_a_command_of_research_is_refused_in_one_line(
    arguments: list[str], product: Path, tmp_path: Path
) -> None:
    result = run(product, tmp_path, *arguments)
    assert (result.returncode, result.stderr) == (2, f"voxveil: error: {LACKING}\n")


def test_without_metadata_the_commands_are_absent(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(extensions, "registered", lambda group: {})
    with pytest.raises(SystemExit) as stopped:
        main(["--help"])
    assert stopped.value.code == 0
    shown = capsys.readouterr().out
    assert not [line for line in shown.splitlines() if line.split()[:1] in (["probe"], ["reproduce"])]
    with pytest.raises(SystemExit) as stopped:
        main(["probe", "run", "features/"])
    assert stopped.value.code == 2
    assert "invalid choice: 'probe'" in capsys.readouterr().err


def test_the_products_pipelines_compile(product: Path, checkout: Path) -> None:
    pytest.importorskip("kfp", reason="needs the pipeline extra")
    used = run(product, checkout, "params", "use", "tiny")
    assert used.returncode == 0, used.stderr
    code = (
        f"import sys; sys.path.insert(0, {str(product)!r})\nfrom voxveil.cli.main import main\n"
        "for name in ('train_and_evaluate', 'retrain', 'evaluate_external', 'evaluate_external_audio'):\n"
        f"    words = ['--images', {IMAGES!r}, '--pipeline', name, '--out', f'{{name}}.yaml']\n"
        "    assert main(['pipeline', 'compile', *words]) == 0\n"
        f"assert main(['pipeline', 'compile', '--images', {IMAGES!r}, '--pipeline', 'probe_features']) == 2\n"
        "assert main(['pipeline', 'step', 'probe-pitch', '--executor-input', '{}']) == 2\n"
    )
    result = subprocess.run([sys.executable, "-c", code], cwd=checkout, capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
    errors = [line for line in result.stderr.splitlines() if line.startswith("voxveil: error")]
    assert errors == [f"voxveil: error: {LACKING}"] * 2
    assert "name: voxveil-train-and-evaluate" in (checkout / "train_and_evaluate.yaml").read_text()


def test_a_shared_params_file_serves_where_research_is_absent(
    root: Path, product: Path, checkout: Path
) -> None:
    """A team's file has sections of research; its product's part is used, and one line says what is not."""
    path = checkout / "params.yaml"
    path.write_bytes((root / "params.yaml").read_bytes())
    checked = run(product, checkout, "params", "check")
    assert checked.returncode == 0, checked.stderr
    ignored = "ignored, since the extra research that has these sections is not installed"
    assert checked.stderr == f"voxveil: parameters: asi, asr, probe: {ignored}\n"
    changed = run(product, checkout, "params", "set", "report.title=ours")
    assert changed.returncode == 0, changed.stderr
    assert path.read_text() == (root / "params.yaml").read_text().replace("title: voxveil", "title: ours")
    used = run(product, checkout, "params", "use", "features-tiny", "--force")
    assert (used.returncode, used.stderr.count("\n")) == (0, 1)
    assert "voxveil: parameters: asi: ignored" in used.stderr
    assert set(read_mapping(path)) == {field.name for field in dataclasses.fields(Params)}


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        (["set", "probe.words=true"], "probe: a change of it needs pip install 'voxveil[research]'"),
        (["explain", "asi.steps"], "asi: its explanation needs pip install 'voxveil[research]'"),
        (["upgrade"], "an upgrade of params.yaml, which writes every section anew, needs pip install"),
    ],
)
def test_what_cannot_be_done_without_research_is_refused_and_changes_nothing(
    arguments: list[str], error: str, root: Path, product: Path, checkout: Path
) -> None:
    path = checkout / "params.yaml"
    path.write_bytes((root / "tests/old_files/params_long.yaml").read_bytes())
    before = path.read_bytes()
    result = run(product, checkout, "params", *arguments)
    assert result.returncode == 2
    assert error in result.stderr.splitlines()[-1]
    assert path.read_bytes() == before


def test_an_unknown_section_is_refused_without_research_too(
    root: Path, product: Path, checkout: Path
) -> None:
    (checkout / "params.yaml").write_text((root / "params.yaml").read_text() + "prob: {words: true}\n")
    result = run(product, checkout, "params", "check")
    assert result.returncode == 2
    assert "prob: unknown parameter" in result.stderr
