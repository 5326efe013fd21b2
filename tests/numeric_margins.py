"""How near numeric comparisons come to failing: a pytest plugin, and a table of what it recorded.

``pytest -p numeric_margins --margins FILE`` (or VOXVEIL_TEST_MARGINS=FILE) appends a line of JSON for each
test: outcome, seconds, and for each line of the tests that compares numbers

- ``shares``: of ``pytest.approx`` and the ``allclose`` functions, the largest part of the tolerance that a
  comparison used which held; 1 is where it begins to fail;
- ``bars``: of ``assert value < bar`` and its like, both numbers (needs
  ``-o enable_assertion_pass_hook=true``; of a chain only the last comparison).

Two variables make this processor compute as another one might, in the pytest process itself and in those
that tests compare it with:

- VOXVEIL_TEST_PERTURBED=3e-7 multiplies each float32 result of products, convolutions, recurrences,
  normalizations and Fourier transforms by 1 + 3e-7 or 1 - 3e-7. The sign follows from the bits and the
  shape of the result: the same computation gives the same bits again, another order of it does not.
- VOXVEIL_TEST_ONEDNN=off leaves oneDNN out.

``python tests/numeric_margins.py FOLDER`` prints what differs between FOLDER/default.jsonl and its
neighbours; tests/under_settings.sh fills such a folder.
"""

from __future__ import annotations

import functools
import importlib
import json
import os
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

TESTS = Path(__file__).resolve().parent
NUMBER = r"(?:np\.float\d+\(|np\.int\d+\()?(-?\d+(?:\.\d*)?(?:e[+-]?\d+)?)\)?"
COMPARISON = re.compile(rf"^\(?{NUMBER} (<|<=|>|>=) {NUMBER}\)?$")
#: What a perturbed result comes from: (module, names).
COMPUTED = [
    ("torch.nn.functional", "linear conv1d conv2d conv_transpose1d scaled_dot_product_attention"),
    ("torch.nn.functional", "batch_norm layer_norm group_norm"),
    ("torch", "matmul mm bmm einsum addmm stft istft"),
    ("torch.fft", "fft ifft rfft irfft"),
    ("torch", "Tensor.matmul Tensor.__matmul__ Tensor.mm Tensor.bmm Tensor.stft"),
    ("torch", "_VF.lstm _VF.gru"),
]


class Recorder:
    """Keeps of the running test what its comparisons used of their tolerances."""

    def __init__(self) -> None:
        self.shares: dict[str, float] = {}
        self.bars: dict[str, tuple[float, str, float]] = {}

    def share(self, difference: Any, tolerance: Any) -> None:
        """Note a comparison, unless it asks for equality or does not hold."""
        import numpy as np

        where = caller()
        if where is None:
            return
        difference, tolerance = np.broadcast_arrays(np.abs(difference), np.abs(tolerance))
        judged = (tolerance > 0) & np.isfinite(difference) & np.isfinite(tolerance)
        if judged.any():
            used = float((difference[judged] / tolerance[judged]).max())
            if used <= 1:
                self.shares[where] = max(used, self.shares.get(where, 0.0))

    def bar(self, where: str, value: float, sign: str, bar: float) -> None:
        """Note an assertion on one side of a bar; of several on one line the nearest."""
        before = self.bars.get(where)
        if before is None or abs(value - bar) < abs(before[0] - before[2]):
            self.bars[where] = (value, sign, bar)

    def taken(self) -> dict[str, Any]:
        """Return what was noted, and forget it."""
        found = {"shares": self.shares, "bars": self.bars}
        self.shares, self.bars = {}, {}
        return found


RECORDER = Recorder()


def caller() -> str | None:
    """Return file:line of the innermost frame that is a test or its helper."""
    frame = sys._getframe(1)
    while frame is not None:
        path = Path(frame.f_code.co_filename)
        if path != Path(__file__) and TESTS in path.parents:
            return f"{path.relative_to(TESTS)}:{frame.f_lineno}"
        frame = frame.f_back  # type: ignore[assignment]
    return None


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--margins", default=os.environ.get("VOXVEIL_TEST_MARGINS"), metavar="FILE")


def pytest_configure(config: pytest.Config) -> None:
    compute_as_asked()
    if config.getoption("--margins"):
        watch_approx()
        watch_closeness()
        config.pluginmanager.register(Writer(Path(config.getoption("--margins")).absolute()))


def compute_as_asked() -> None:
    """Do what the variables ask for; a test's own processes may call it too."""
    if os.environ.get("VOXVEIL_TEST_ONEDNN") == "off":
        importlib.import_module("torch").backends.mkldnn.set_flags(False)
    if size := os.environ.get("VOXVEIL_TEST_PERTURBED"):
        perturb(float(size))


class Writer:
    """Writes a line for each test."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def pytest_assertion_pass(self, item: pytest.Item, lineno: int, orig: str, expl: str) -> None:
        found = COMPARISON.match(expl.split("\n")[0].strip())
        where = caller()
        # Assertions of other plugins come here too.
        if found and where and where.endswith(f":{lineno}"):
            RECORDER.bar(where, float(found[1]), found[2], float(found[3]))

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.when == "call" or report.outcome != "passed":
            line = {
                "test": report.nodeid,
                "outcome": report.outcome,
                "seconds": round(report.duration, 2),
                "when": report.when,
                **RECORDER.taken(),
            }
            with self.path.open("a") as file:
                file.write(json.dumps(line) + "\n")


def watch_approx() -> None:
    scalar = type(pytest.approx(1.0))
    equals = scalar.__eq__

    @functools.wraps(equals)
    def watched(self: Any, actual: Any) -> bool:
        held = equals(self, actual)
        if held and isinstance(actual, int | float) or getattr(actual, "shape", None) == ():
            RECORDER.share(float(actual) - float(self.expected), float(self.tolerance))
        return bool(held)

    scalar.__eq__ = watched  # type: ignore[method-assign]


def watch_closeness() -> None:
    """Watch allclose and its like, of numpy and torch, with the tolerances each takes by itself."""
    import numpy as np

    replace("numpy", "allclose", closeness(1e-5, 1e-8))
    replace("numpy", "isclose", closeness(1e-5, 1e-8))
    replace("numpy.testing", "assert_allclose", closeness(1e-7, 0.0))
    try:
        import torch
    except ImportError:
        return
    replace("torch", "allclose", closeness(1e-5, 1e-8))
    own = {torch.float64: (1e-7, 1e-7), torch.float32: (1.3e-6, 1e-5), np.dtype("float32"): (1.3e-6, 1e-5)}

    def of_type(actual: Any) -> tuple[float, float]:
        return own.get(getattr(actual, "dtype", None), (1e-7, 1e-7))

    replace("torch.testing", "assert_close", closeness(of_type=of_type))


def closeness(rtol: float = 0.0, atol: float = 0.0, of_type: Any = None) -> Callable[[Any], Any]:
    def wrapper(function: Any) -> Any:
        @functools.wraps(function)
        def watched(actual: Any, expected: Any, *args: Any, **kwargs: Any) -> Any:
            import numpy as np

            relative, absolute = of_type(actual) if of_type else (rtol, atol)
            given = dict(zip(("rtol", "atol"), args, strict=False)) | kwargs
            relative = given["rtol"] if given.get("rtol") is not None else relative
            absolute = given["atol"] if given.get("atol") is not None else absolute
            got, wanted = plain(actual), plain(expected)
            if got.dtype.kind in "fiu" and wanted.dtype.kind in "fiu":
                got, wanted = got.astype(np.float64), wanted.astype(np.float64)
                RECORDER.share(got - wanted, absolute + relative * np.abs(wanted))
            return function(actual, expected, *args, **kwargs)

        return watched

    return wrapper


def plain(value: Any) -> Any:
    """Return a tensor or anything like an array as an array."""
    import numpy as np

    return np.asarray(value.detach().cpu() if hasattr(value, "detach") else value)


def replace(module: str, name: str, wrapper: Callable[[Any], Any]) -> None:
    owner: Any = importlib.import_module(module)
    *path, last = name.split(".")
    for part in path:
        owner = getattr(owner, part)
    setattr(owner, last, wrapper(getattr(owner, last)))


def perturb(size: float) -> None:
    """Multiply float32 results by 1 + size or 1 - size."""
    import torch

    def moved(result: Any) -> Any:
        if isinstance(result, tuple):
            return tuple(moved(each) for each in result)
        if not isinstance(result, torch.Tensor):
            return result
        if result.dtype == torch.complex64:
            return torch.view_as_complex(moved(torch.view_as_real(result)))
        if result.dtype != torch.float32:
            return result
        with torch.no_grad():
            bits = result.detach().contiguous().view(torch.int32).long()
            key = sum((place + 1) * 2654435761 * length for place, length in enumerate(result.shape))
            mixed = (bits + key) * 0x9E3779B97F4A7C1
            sign = ((mixed >> 33) & 1).to(torch.float32) * 2 - 1
            factor = 1 + size * sign
        return result * factor

    def wrapper(function: Any) -> Any:
        @functools.wraps(function)
        def perturbed(*args: Any, **kwargs: Any) -> Any:
            return moved(function(*args, **kwargs))

        return perturbed

    for module, names in COMPUTED:
        for name in names.split():
            replace(module, name, wrapper)


def read(path: Path) -> dict[str, dict[str, Any]]:
    return {line["test"]: line for line in map(json.loads, path.read_text().splitlines())}


def nearness(value: float, bar: float, usual: float) -> float:
    """Return how much of the way from the usual value to the bar is used; 1 is at the bar."""
    way = bar - usual
    return (value - usual) / way if way else float(value != usual)


def moved_lines(found: dict[str, Any], usual: dict[str, Any]) -> list[str]:
    """Return what of a test's comparisons is worth a look: the place, and the figures of it."""
    lines = []
    for where, share in found["shares"].items():
        before = usual["shares"].get(where, 0.0)
        if share > 0.5 or abs(share - before) > 0.1:
            lines.append(f"{where} uses {share:.0%} of its tolerance ({before:.0%})")
    for where, (value, sign, bar) in found["bars"].items():
        before, _, old_bar = usual["bars"].get(where, (value, sign, bar))
        if old_bar == bar and value != before and nearness(value, bar, before) > 0.25:
            lines.append(f"{where} {value:.6g} {sign} {bar:.6g} ({before:.6g})")
    return lines


def main(folder: Path) -> None:
    usual = read(folder / "default.jsonl")
    print("| setting | tests | failed | moved |\n|---|---|---|---|")
    details = []
    for path in sorted(folder.glob("*.jsonl"), key=lambda path: (path.stem != "default", path.stem)):
        found = read(path)
        failed = [test for test, line in found.items() if line["outcome"] == "failed"]
        moved = {
            test: lines for test, line in found.items() if (lines := moved_lines(line, usual.get(test, line)))
        }
        print(f"| {path.stem} | {len(found)} | {len(failed)} | {len(moved)} |")
        details += [f"{path.stem}: {test} failed" for test in failed]
        details += [f"{path.stem}: {test}: {line}" for test, lines in moved.items() for line in lines]
    print("", *details, sep="\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
