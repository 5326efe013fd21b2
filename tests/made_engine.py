"""A Docker engine for the tests: the one that answers, or one of their own where this is root on Debian."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
import time
from pathlib import Path

#: Room that the images and their layers take while they are built.
ROOM = 20 * 10**9
_PACKAGES = "ca-certificates,python3,python3-venv,python3-pip,python-is-python3"


class Absent(Exception):
    """There is no engine, and none can be started here."""


class Engine:
    """An engine, the client that builds with BuildKit, and the image to build upon."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        self._folder: Path | None = None
        self.base = os.environ.get("BASE_IMAGE", "python:3.11-slim-bookworm")
        self.client = _client()
        self.environment: dict[str, str] = {"DOCKER_BUILDKIT": "1"}
        if "DOCKER_HOST" in os.environ:
            self.environment["DOCKER_HOST"] = os.environ["DOCKER_HOST"]
        if not self._answers():
            self._start()

    def build(self, root: Path, target: str, tag: str, *arguments: str) -> None:
        """Build one target of ``docker/Dockerfile``; a failure shows the end of what was printed."""
        authority = os.environ.get("SSL_CERT_FILE", "")
        secret = ["--secret", f"id=ca,src={authority}"] if authority else []
        self._run(
            *(self.client, "build", "--network", "host", *secret),
            *("--build-arg", f"BASE_IMAGE={self.base}", *arguments),
            *("--target", target, "-t", tag, "-f", "docker/Dockerfile", "."),
            folder=root,
        )

    def close(self) -> None:
        """Stop an engine that was started here, and delete what it kept."""
        if self._process is not None:
            self._process.terminate()
            self._process.wait(60)
        if self._folder is not None:
            for line in Path("/proc/self/mounts").read_text().splitlines():
                if (place := line.split()[1]).startswith(f"{self._folder}/"):
                    subprocess.run(["umount", "-l", place], check=False)
            # Hundreds of thousands of small files: not one by one from Python.
            subprocess.run(["rm", "-rf", str(self._folder)], check=False)

    def _start(self) -> None:
        if os.getuid() != 0 or not shutil.which("dockerd") or not shutil.which("debootstrap"):
            raise Absent("a Docker engine, or dockerd and debootstrap (root, Debian)")
        # A socket's path may have 107 characters.
        folder = Path(tempfile.mkdtemp(prefix="voxveil-dk."))
        if shutil.disk_usage(folder).free < ROOM:
            folder.rmdir()
            raise Absent(f"{ROOM / 10**9:.0f} GB of free disk for images")
        self._folder = folder
        host = f"unix://{folder}/docker.sock"
        with (folder / "log").open("wb") as log:
            self._process = subprocess.Popen(
                [
                    *("dockerd", "--data-root", f"{folder}/data", "--exec-root", f"{folder}/exec"),
                    *("--pidfile", f"{folder}/pid", "-H", host, "--iptables=false", "--bridge=none"),
                ],
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        self.environment["DOCKER_HOST"] = host
        until = time.monotonic() + 60
        while not self._answers():
            if self._process.poll() is not None or time.monotonic() > until:
                said = (folder / "log").read_text(errors="replace").splitlines()
                self.close()
                raise Absent(f"a Docker engine that starts ({said[-1] if said else 'it said nothing'})")
            time.sleep(0.2)
        if "BASE_IMAGE" not in os.environ:
            self.base = "voxveil-base:tests"
            system = folder / "base"
            self._run("debootstrap", "--variant=minbase", f"--include={_PACKAGES}", "bookworm", str(system))
            archive = folder / "base.tar"
            self._run("tar", "-C", str(system), "-cf", str(archive), ".")
            self._run(self.client, "import", "-c", 'CMD ["python3"]', str(archive), self.base)
            archive.unlink()
            shutil.rmtree(system)

    def _answers(self) -> bool:
        try:
            return not subprocess.run(
                [self.client, "info"],
                env={**os.environ, **self.environment},
                capture_output=True,
                check=False,
            ).returncode
        except OSError:
            return False

    def _run(self, *command: str, folder: Path | None = None) -> None:
        result = subprocess.run(
            command,
            cwd=folder,
            env={**os.environ, **self.environment},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        if result.returncode:
            raise AssertionError(f"{' '.join(command)} -> {result.returncode}\n{result.stdout[-3000:]}")


def _client() -> str:
    """Return Debian's client where there is one: it builds with BuildKit, others need a plugin for that."""
    try:
        listed = subprocess.run(
            ["dpkg", "-L", "docker.io"], capture_output=True, text=True, check=False
        ).stdout
    except OSError:
        listed = ""
    return next((line for line in listed.splitlines() if line.endswith("bin/docker")), "docker")
