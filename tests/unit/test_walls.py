"""The walls of the package: lazy imports, one-way imports, small files, nothing that shadows a library."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest

from house_figures import count_lines
from import_graph import arrows, cycles, import_graph, room
from voxveil.stages.registry import STAGES

HEAVY = (
    "torch",
    "speechbrain",
    "mlflow",
    "kfp",
    "dvc",
    "matplotlib",
    "soundfile",
    "sklearn",
    "scipy",
    "numpy",
)

#: The rooms of the package, lowest first. A room imports rooms above it in this table, never one below.
ROOMS = (
    "runtime",
    "config",
    "privacy",
    "audio",
    "training",
    "corpus",
    "features",
    "pretrained",
    "synthesis",
    "anonymize",
    "metrics",
    "utility",
    "attack",
    "results",
    "tracking",
    "datasets",
    "stages",
    "kubeflow",
    "cli",
    "research",
)

#: The room outside the product, which registers with it by entry points.
OUTSIDE = "research"


@pytest.mark.parametrize(
    "arguments",
    [
        ["--help"],
        ["stage", "--help"],
        ["anonymize", "--help"],
        ["evaluate", "--help"],
        ["params", "--help"],
        ["data", "--help"],
    ],
)
def test_help_loads_no_heavy_library(arguments: list[str]) -> None:
    code = (
        "import sys\nfrom voxveil.cli.main import main\n"
        f"try: main({arguments!r})\nexcept SystemExit as stop: assert stop.code == 0\n"
        f"print([name for name in {HEAVY[:6]!r} if name in sys.modules])"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout.splitlines()[-1] == "[]"
    assert "example" in result.stdout


def test_plain_help_needs_not_even_numpy() -> None:
    code = f"import sys\nimport voxveil.cli.main\nprint([name for name in {HEAVY!r} if name in sys.modules])"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout.strip() == "[]"


def test_metrics_need_no_torch_or_plots() -> None:
    code = (
        "import sys\nimport voxveil.metrics.suite, voxveil.cli.evaluate\n"
        f"print([name for name in {HEAVY[:6]!r} if name in sys.modules])"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout.strip() == "[]"


@pytest.mark.parametrize("stage", [*(spec.name for spec in STAGES if not spec.torch), "gathering"])
def test_stage_module_imports_no_torch(stage: str) -> None:
    code = f"import sys\nimport voxveil.stages.{stage}\nprint('torch' in sys.modules)"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout.strip() == "False"


@pytest.mark.parametrize("folder", ["mlflow", "docker"])
def test_folder_does_not_shadow_a_package(folder: str, root: Path) -> None:
    assert (root / folder).is_dir()
    assert not list((root / folder).rglob("__init__.py"))


def test_mlflow_imported_from_the_root_is_the_library(root: Path) -> None:
    code = "import mlflow; print(hasattr(mlflow, 'start_run'))"
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=root
    )
    assert result.stdout.strip() == "True"


def test_no_file_is_longer_than_400_lines(root: Path) -> None:
    folders = ("src", "components", "pipelines", "tests")
    lines = {
        path.relative_to(root): len(path.read_text().splitlines())
        for folder in folders
        for path in (root / folder).rglob("*.py")
    }
    assert {path.parts[0] for path in lines} == set(folders)
    assert not [path.as_posix() for path, count in lines.items() if count > 400]


def test_every_room_has_its_place(root: Path) -> None:
    source = root / "src/voxveil"
    rooms = {path.name for path in source.iterdir() if path.is_dir() and path.name != "__pycache__"}
    assert rooms == set(ROOMS)
    assert {path.name for path in source.glob("*.py")} == {"__init__.py"}


def test_imports_between_rooms_run_one_way(root: Path) -> None:
    rank = {name: index for index, name in enumerate(ROOMS)}
    graph = import_graph(root / "src/voxveil")
    assert len(arrows(graph)) > len(ROOMS)
    wrong = [
        f"{name} imports {other}"
        for name, others in graph.items()
        for other in others
        if room(name) and room(other) and rank[room(other)] > rank[room(name)]
    ]
    assert not wrong


def test_the_product_never_imports_research(root: Path) -> None:
    graph = import_graph(root / "src/voxveil")
    inside = {name for name in graph if room(name) == OUTSIDE}
    assert len(inside) > 40
    assert not [name for name in graph.keys() - inside if graph[name] & inside]


def test_the_product_never_names_research(root: Path) -> None:
    """An import by name (``importlib``) would stand in no import graph."""
    source = root / "src/voxveil"
    product = [path for path in source.rglob("*.py") if path.relative_to(source).parts[0] != OUTSIDE]
    others = [path for folder in ("components", "pipelines") for path in (root / folder).rglob("*.py")]
    assert len(product) > 300 and len(others) > 25
    found = [path for path in (*product, *others) if f"voxveil.{OUTSIDE}" in path.read_text(encoding="utf-8")]
    assert [path.relative_to(root).as_posix() for path in found] == ["pipelines/probe_features.py"]


def test_no_circle_between_modules(root: Path) -> None:
    graph = import_graph(root / "src/voxveil")
    assert len(graph) > 300
    assert not cycles(graph)


def test_cycles_and_arrows_are_found_in_functions_and_types(tmp_path: Path) -> None:
    files = {
        "__init__.py": "",
        "low/__init__.py": "",
        "low/a.py": "def call():\n    from pack.high import b\n    return b\n",
        "high/__init__.py": "",
        "high/b.py": "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import pack.low.a\n",
        "high/c.py": "from pack.high.b import name\n",
    }
    for name, text in files.items():
        (tmp_path / "pack" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "pack" / name).write_text(text)
    graph = import_graph(tmp_path / "pack")
    assert cycles(graph) == [["pack.high.b", "pack.low.a"]]
    assert arrows(graph) == {("low", "high"), ("high", "low")}


def test_lines_of_code_comments_and_docstrings_are_counted_apart() -> None:
    text = '"""First.\n\nSecond."""\n# alone\nx = 1  # beside\n\ny = """a\nb"""\n'
    assert count_lines(text) == (3, 1, 3)


def test_git_is_called_in_one_place(root: Path) -> None:
    source = root / "src/voxveil"
    callers = [
        path.relative_to(source).as_posix()
        for path in source.rglob("*.py")
        if any(
            isinstance(node, ast.List) and node.elts and ast.unparse(node.elts[0]) == "'git'"
            for node in ast.walk(ast.parse(path.read_text()))
        )
    ]
    assert callers == ["runtime/git.py"]


def test_source_has_no_assert_pickle_or_global_seed(root: Path) -> None:
    bad = []
    paths = list((root / "src").rglob("*.py"))
    assert len(paths) > 100
    for path in paths:
        for node in ast.walk(ast.parse(path.read_text())):
            text = ast.unparse(node) if isinstance(node, ast.Call) else ""
            if (
                isinstance(node, ast.Assert)
                or text.startswith(("pickle.", "torch.save(", "np.random.seed(", "random.seed("))
                or text.startswith("torch.load(")
                and "weights_only=True" not in text
                or "allow_pickle=True" in text
                and text.startswith("np.load")
            ):
                bad.append(f"{path.relative_to(root)}:{node.lineno}")
    assert not bad


def test_the_workflow_runs_what_ci_runs(root: Path) -> None:
    targets = re.compile(r"\bmake ([a-z -]+)$", re.MULTILINE)
    script, workflow = (
        {target for found in targets.findall((root / name).read_text()) for target in found.split()}
        for name in (".ci/run", ".github/workflows/ci.yml")
    )
    assert script == workflow
    assert {"check", "infra-check", "test", "test-services"} <= script
