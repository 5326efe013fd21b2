"""Run ``voxveil`` and kill it with SIGKILL at its N-th write; print how many writes there were otherwise.

A write is what changes the file system: a file opened for writing, a rename, a removal, a new folder.
Usage: python killed_at_write.py N ARGUMENTS...  (N = 0: never kill)
"""

from __future__ import annotations

import os
import signal
import sys

CHANGES = {"os.rename", "os.mkdir", "os.remove", "os.rmdir", "shutil.rmtree"}


def main() -> int:
    """Count writes by an audit hook, then run the command line."""
    limit, count, owner = int(sys.argv[1]), 0, os.getpid()

    def hook(event: str, arguments: tuple[object, ...]) -> None:
        nonlocal count
        opened = (
            event == "open" and isinstance(arguments[2], int) and arguments[2] & (os.O_WRONLY | os.O_RDWR)
        )
        if (opened or event in CHANGES) and os.getpid() == owner and arguments[0] != os.devnull:
            count += 1
            if count == limit:
                os.kill(os.getpid(), signal.SIGKILL)

    from voxveil.cli.main import main as voxveil

    sys.addaudithook(hook)
    status = voxveil(sys.argv[2:])
    print(f"writes {count}")
    return status


if __name__ == "__main__":
    sys.exit(main())
