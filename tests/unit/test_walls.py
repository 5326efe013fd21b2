"""The walls of the package: lazy imports, one-way imports, small files, nothing that shadows a library."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

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
    "synthesis",
    "anonymize",
    "metrics",
    "attack",
    "utility",
    "results",
    "tracking",
    "datasets",
    "stages",
    "research",
    "kubeflow",
    "cli",
)


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


@pytest.mark.parametrize("stage", ["prepare", "evaluate", "bundle", "report", "gathering"])
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


def modules(source: Path) -> dict[str, Path]:
    """Return every module of the package by its dotted name."""
    found = {}
    for path in source.rglob("*.py"):
        name = ".".join(("voxveil", *path.relative_to(source).with_suffix("").parts))
        found[name.removesuffix(".__init__")] = path
    return found


def imports_of(path: Path, known: dict[str, Path]) -> set[str]:
    """Return the modules of the package that a file imports anywhere: in functions and for types too."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            names = {f"{node.module}.{alias.name}" for alias in node.names}
            found |= {name if name in known else node.module for name in names}
    return found & known.keys()


def test_every_room_has_its_place(root: Path) -> None:
    source = root / "src/voxveil"
    rooms = {path.name for path in source.iterdir() if path.is_dir() and path.name != "__pycache__"}
    assert rooms == set(ROOMS)
    assert {path.name for path in source.glob("*.py")} == {"__init__.py"}


def test_imports_between_rooms_run_one_way(root: Path) -> None:
    rank = {room: index for index, room in enumerate(ROOMS)}
    known = modules(root / "src/voxveil")
    wrong = [
        f"{name} imports {other}"
        for name, path in known.items()
        for other in imports_of(path, known)
        if "." in name and "." in other and rank[other.split(".")[1]] > rank[name.split(".")[1]]
    ]
    assert not wrong


def test_no_circle_between_modules(root: Path) -> None:
    known = modules(root / "src/voxveil")
    graph = {name: imports_of(path, known) - {name} for name, path in known.items()}
    assert len(graph) > 300
    done: set[str] = set()

    def visit(name: str, trail: tuple[str, ...]) -> None:
        assert name not in trail, " -> ".join((*trail, name))
        if name in done:
            return
        for other in graph[name]:
            visit(other, (*trail, name))
        done.add(name)

    for name in graph:
        visit(name, ())


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
                or text.startswith(
                    ("pickle.", "torch.load(", "torch.save(", "np.random.seed(", "random.seed(")
                )
                or "allow_pickle=True" in text
                and text.startswith("np.load")
            ):
                bad.append(f"{path.relative_to(root)}:{node.lineno}")
    assert not bad
