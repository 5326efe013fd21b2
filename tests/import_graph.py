"""The import graph of the package: its modules, what they import, the rooms they lie in, and cycles.

Imports inside functions and under ``TYPE_CHECKING`` count like those at the top of a file.
``tests/unit/test_walls.py`` holds the graph to its rules, and ``tests/house_figures.py`` counts it.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping, Set
from pathlib import Path

#: A graph: the modules that every module imports, by dotted name.
Graph = Mapping[str, Set[str]]


def modules(source: Path) -> dict[str, Path]:
    """Return every module of the package in the folder ``source`` by its dotted name."""
    found = {}
    for path in sorted(source.rglob("*.py")):
        name = ".".join((source.name, *path.relative_to(source).with_suffix("").parts))
        found[name.removesuffix(".__init__")] = path
    return found


def imports_of(path: Path, known: Mapping[str, Path]) -> set[str]:
    """Return the modules among ``known`` that a file imports anywhere: in functions and for types too."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            names = {f"{node.module}.{alias.name}" for alias in node.names}
            found |= {name if name in known else node.module for name in names}
    return found & known.keys()


def import_graph(source: Path) -> dict[str, set[str]]:
    """Return the import graph of the package in ``source``, without a module's imports of itself."""
    known = modules(source)
    return {name: imports_of(path, known) - {name} for name, path in known.items()}


def room(module: str) -> str:
    """Return the first name below the package: a room, or a module beside the rooms. The package has ''."""
    return ".".join(module.split(".")[1:2])


def arrows(graph: Graph) -> set[tuple[str, str]]:
    """Return the pairs (importing room, imported room) of different rooms."""
    pairs = {(room(name), room(other)) for name, others in graph.items() for other in others}
    return {(first, second) for first, second in pairs if first and second and first != second}


def cycles(graph: Graph) -> list[list[str]]:
    """Return the groups of modules that import each other, directly or through others.

    A group is a strongly connected component of at least two modules, found by Tarjan's algorithm.
    """
    index: dict[str, int] = {}
    lowest: dict[str, int] = {}
    stack: list[str] = []
    groups: list[list[str]] = []

    def visit(name: str) -> None:
        index[name] = lowest[name] = len(index)
        stack.append(name)
        for other in sorted(graph[name]):
            if other not in index:
                visit(other)
                lowest[name] = min(lowest[name], lowest[other])
            elif other in stack:
                lowest[name] = min(lowest[name], index[other])
        if lowest[name] == index[name]:
            position = stack.index(name)
            group = sorted(stack[position:])
            del stack[position:]
            if len(group) > 1:
                groups.append(group)

    for name in sorted(graph):
        if name not in index:
            visit(name)
    return sorted(groups)
