"""Size and structure of the package, counted for one or more Git revisions and printed as a table.

Usage: ``python tests/house_figures.py [REVISION ...]``. A revision is anything that ``git archive`` takes;
``.`` stands for the working tree. Without an argument the working tree is counted.

Lines are those of ``src/voxveil``. A code line holds a token that is neither a comment nor part of a
docstring; a comment line holds nothing else. A room is a package directly below ``voxveil``; modules beside
the rooms are counted apart, and arrows run between rooms and such modules. Imports in functions and for types
count. Vague identifiers are searched in ``src``, ``components`` and ``pipelines``.
"""

from __future__ import annotations

import ast
import io
import re
import subprocess
import sys
import tarfile
import tempfile
import tokenize
from collections.abc import Sequence
from pathlib import Path

from import_graph import arrows, cycles, import_graph, modules

#: Modules under this length are counted as small.
SMALL = 60
FOLDERS = ("src", "components", "pipelines")
VAGUE = re.compile(r"^\s*(for )?(told|there|made|heard|spoken|place|near)(:| =|, | in )", re.MULTILINE)
NO_CODE = {
    tokenize.COMMENT,
    tokenize.NL,
    tokenize.NEWLINE,
    tokenize.INDENT,
    tokenize.DEDENT,
    tokenize.ENCODING,
    tokenize.ENDMARKER,
}


def docstring_lines(text: str) -> set[int]:
    """Return the numbers of the lines that docstrings of a module, its classes and its functions take."""
    lines: set[int] = set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) and node.body:
            first = node.body[0]
            if ast.get_docstring(node, clean=False) is not None:
                lines |= set(range(first.lineno, (first.end_lineno or first.lineno) + 1))
    return lines


def count_lines(text: str) -> tuple[int, int, int]:
    """Return the numbers of code lines, comment lines and docstring lines of a Python file."""
    documented = docstring_lines(text)
    code: set[int] = set()
    commented: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        lines = range(token.start[0], token.end[0] + 1)
        if token.type == tokenize.COMMENT:
            commented |= set(lines)
        elif token.type not in NO_CODE:
            code |= set(lines)
    code -= documented
    return len(code), len(commented - code - documented), len(documented)


def figures(root: Path) -> dict[str, int]:
    """Return the figures of the checkout ``root``, in the order of the table."""
    source = root / "src/voxveil"
    texts = {name: path.read_text(encoding="utf-8") for name, path in modules(source).items()}
    counts = [count_lines(text) for text in texts.values()]
    graph = import_graph(source)
    pairs = arrows(graph)
    groups = cycles(graph)
    vague = [
        match
        for folder in FOLDERS
        for path in sorted((root / folder).rglob("*.py"))
        for match in VAGUE.finditer(path.read_text(encoding="utf-8"))
    ]
    return {
        "files": len(texts),
        "lines": sum(len(text.splitlines()) for text in texts.values()),
        "code lines": sum(code for code, _, _ in counts),
        "comment lines": sum(comments for _, comments, _ in counts),
        "docstring lines": sum(documented for _, _, documented in counts),
        "rooms": sum(1 for path in source.iterdir() if (path / "__init__.py").is_file()),
        "modules beside the rooms": sum(1 for path in source.glob("*.py") if path.stem != "__init__"),
        "arrows between rooms": len(pairs),
        "pairs of rooms with arrows both ways": sum((b, a) in pairs for a, b in pairs) // 2,
        "import cycles between modules": len(groups),
        "modules in import cycles": sum(map(len, groups)),
        f"modules under {SMALL} lines": sum(len(text.splitlines()) < SMALL for text in texts.values()),
        "vague identifiers": len(vague),
    }


def figures_of(root: Path, revision: str) -> dict[str, int]:
    """Return the figures of a Git revision of the repository ``root``, or of the working tree for ``.``."""
    if revision == ".":
        return figures(root)
    command = ["git", "archive", "--format=tar", revision, "--", *FOLDERS]
    archive = subprocess.run(command, cwd=root, check=True, capture_output=True).stdout
    with tempfile.TemporaryDirectory() as folder:
        with tarfile.open(fileobj=io.BytesIO(archive)) as tar:
            tar.extractall(folder, filter="data")
        return figures(Path(folder))


def table(columns: dict[str, dict[str, int]]) -> str:
    """Return the figures of several revisions as a table in Markdown, a column for each revision."""
    rows = [["", *columns]]
    rows += [
        [name, *(f"{column[name]:,}" for column in columns.values())] for name in next(iter(columns.values()))
    ]
    rows.insert(1, ["---", *("---:" for _ in columns)])
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def main(revisions: Sequence[str]) -> int:
    """Print the table of the given revisions."""
    root = Path(__file__).resolve().parents[1]
    try:
        columns = {revision: figures_of(root, revision) for revision in revisions or ["."]}
    except subprocess.CalledProcessError as error:
        print(error.stderr.decode().strip(), file=sys.stderr)
        return 2
    print(table(columns))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
