"""A door to a server that a test can shut: what a network fault or a restart looks like from a client."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Callable


class Gateway:
    """Forward TCP connections to a port until shut.

    Args:
        target: Port on loopback.
    """

    def __init__(self, target: int) -> None:
        self._target = target
        self._open: list[socket.socket] = []
        self._uploads_left: int | None = None
        self._pass = threading.Event()
        self._pass.set()
        self.held = threading.Event()
        self._listen(0)
        self.port = self._door.getsockname()[1]

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def shut(self) -> None:
        """Refuse new connections and cut those that are open."""
        # Closing alone would leave the thread that waits in accept with an open door.
        self._door.shutdown(socket.SHUT_RDWR)
        self._door.close()
        for each in self._open:
            with contextlib.suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
            each.close()
        self._open.clear()

    def reopen(self) -> None:
        self._listen(self.port)

    def hold_after(self, uploads: int) -> None:
        """Forward this many PUT requests, then keep all data from clients back until ``release``.

        ``held`` is set when the first request waits.
        """
        self._uploads_left = uploads
        self.held.clear()

    def release(self) -> None:
        """Forward everything again."""
        self._uploads_left = None
        self._pass.set()

    def _listen(self, port: int) -> None:
        self._door = socket.create_server(("127.0.0.1", port), reuse_port=False)
        threading.Thread(target=self._accept, args=(self._door,), daemon=True).start()

    def _accept(self, door: socket.socket) -> None:
        while True:
            try:
                client, _ = door.accept()
                server = socket.create_connection(("127.0.0.1", self._target))
            except OSError:
                return
            self._open += [client, server]
            for source, sink, check in ((client, server, self._wait), (server, client, None)):
                threading.Thread(target=_pump, args=(source, sink, check), daemon=True).start()

    def _wait(self, data: bytes) -> None:
        if self._uploads_left is not None and data.startswith(b"PUT "):
            self._uploads_left -= 1
            if self._uploads_left < 0:
                self._pass.clear()
                self.held.set()
        self._pass.wait()


def _pump(source: socket.socket, sink: socket.socket, check: Callable[[bytes], None] | None) -> None:
    with contextlib.suppress(OSError):
        while data := source.recv(65536):
            if check is not None:
                check(data)
            sink.sendall(data)
    with contextlib.suppress(OSError):
        sink.shutdown(socket.SHUT_WR)
