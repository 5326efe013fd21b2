"""Write API pages of the package from its docstrings: ``make docs``, into ``build/api``.

A warning of pdoc ends the run with status 1: a module that cannot be imported, an annotation or a docstring
that cannot be read. Modules with a leading underscore and undocumented members have no page.
"""

from __future__ import annotations

import importlib
import pkgutil
import sys
import warnings
from pathlib import Path

import pdoc
import pdoc.render

import voxveil

ROOT = Path(__file__).resolve().parents[1]
OUTPUT = ROOT / "build/api"


def module_names() -> list[str]:
    """Return the modules to name: pdoc finds those below a package only as far as its ``__all__`` leads."""
    names = [voxveil.__name__]
    for module in pkgutil.walk_packages(voxveil.__path__, "voxveil."):
        parent, _, name = module.name.rpartition(".")
        exported = getattr(importlib.import_module(parent), "__all__", None)
        if exported is not None and name not in exported and not name.startswith("_"):
            names.append(module.name)
    return names


def main() -> int:
    """Write the pages and print each warning; return 1 where there was one."""
    pdoc.render.configure(docformat="google", include_undocumented=False, show_source=False)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        pdoc.pdoc(*module_names(), output_directory=OUTPUT)
    library = Path(pdoc.__file__).parent
    faults = [str(warning.message) for warning in caught if library in Path(warning.filename).parents]
    for fault in faults:
        print(f"docs: {fault}", file=sys.stderr)
    pages = sum(1 for _ in OUTPUT.rglob("*.html"))
    print(f"{pages} pages in {OUTPUT.relative_to(ROOT)}, {len(faults)} warnings")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
