"""Background server processes, identified across commands by pid and start time."""

from __future__ import annotations

import os
import random
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from voxveil.tracking.servers.settings import StackError

__all__ = ["Daemon", "free_port", "wait_until"]


def free_port() -> int:
    """Return a TCP port on loopback that no socket uses now.

    The port lies below the range from which Linux, by default, takes the ports of outgoing connections. A
    port of that range can be taken by any connection before the server listens on it.
    """
    for port in random.SystemRandom().sample(range(15_000, 32_000), 200):
        with socket.socket() as probe:
            # A server's own connections that ended a moment ago do not keep it from listening again.
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port
    raise StackError("no free TCP port on 127.0.0.1 among 200 tried between 15000 and 32000")


def wait_until(
    ready: Callable[[], bool], alive: Callable[[], bool], log: Path, what: str, seconds: float
) -> None:
    """Wait for a server that is starting.

    Raises:
        StackError: It ended or did not become ready; the end of its log is shown.
    """
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        if not alive():
            raise StackError(f"{what} ended while starting: {_last_line(log)} ({log})")
        if ready():
            return
        time.sleep(0.3)
    raise StackError(f"{what} did not become ready within {seconds:.0f} s: {_last_line(log)} ({log})")


class Daemon:
    """A server that outlives the command that started it. Linux only.

    Args:
        folder: For ``NAME.pid`` and ``NAME.log``.
        name: What it is called.
    """

    def __init__(self, folder: Path, name: str) -> None:
        self._pid_file = folder / f"{name}.pid"
        self.log = folder / f"{name}.log"
        self.name = name
        self._child: subprocess.Popen[bytes] | None = None

    def pid(self) -> int | None:
        """Return the pid while the process runs; a pid that was given to another process does not count."""
        try:
            pid, started = self._pid_file.read_text(encoding="utf-8").split()
        except (OSError, ValueError):
            return None
        if self._child is not None:
            # Collects a child that has ended; else it would count as running.
            self._child.poll()
        return int(pid) if _start_time(int(pid)) == started else None

    def start(self, command: Sequence[str], environment: Mapping[str, str], cwd: Path) -> None:
        """Start the process in a session of its own, its output in the log."""
        with self.log.open("ab") as out:
            self._child = subprocess.Popen(
                command,
                env=dict(environment),
                cwd=cwd,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        self._pid_file.write_text(f"{self._child.pid} {_start_time(self._child.pid)}\n", encoding="utf-8")

    def stop(self, seconds: float = 15.0) -> bool:
        """End the process and its children; return whether it was running."""
        pid = self.pid()
        if pid is None:
            self._pid_file.unlink(missing_ok=True)
            return False
        for sign in (signal.SIGTERM, signal.SIGKILL):
            _signal(pid, sign)
            until = time.monotonic() + seconds
            while self.pid() is not None and time.monotonic() < until:
                time.sleep(0.1)
            if self.pid() is None:
                break
        # Workers that outlived their parent.
        _signal(pid, signal.SIGKILL)
        self._pid_file.unlink(missing_ok=True)
        return True


def _signal(pid: int, sign: signal.Signals) -> None:
    try:
        os.killpg(pid, sign)
    except ProcessLookupError:
        return


def _start_time(pid: int) -> str | None:
    """Return the start time of a living process in clock ticks since boot, None where there is none."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    except OSError:
        return None
    return None if fields[0] == "Z" else fields[19]


def _last_line(log: Path) -> str:
    try:
        lines = [line for line in log.read_text("utf-8", "replace").splitlines() if line.strip()]
    except OSError:
        return "no log"
    return lines[-1].strip()[:200] if lines else "the log is empty"
