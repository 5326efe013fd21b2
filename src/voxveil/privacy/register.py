"""The register of releases: one JSON object per release id, in a folder or in an S3 bucket.

It lies outside DVC, so that an output restored from a cache costs nothing and a rerun does.
An object is created exclusively, made durable and read back before any noise is drawn; it is
never changed or removed. Writers never touch the same object, so any number may write at once.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Protocol

from voxveil.runtime.errors import InputError, MissingExtraError, PrivacyError
from voxveil.runtime.project import project_root
from voxveil.runtime.s3 import S3Uri, s3_client, s3_fault, s3_status

__all__ = ["FolderRegister", "Register", "S3Register", "open_register", "register_location"]

_NAME = re.compile(r"[0-9a-f]{32}\Z")
_SUFFIX = ".json"


class Register(Protocol):
    """A store of immutable objects named by release id (32 hexadecimal digits)."""

    #: Where it is, as a person would write it.
    location: str

    def create(self, name: str, content: bytes) -> None:
        """Store ``content`` durably under a new ``name``; an existing name is an error.

        Raises:
            PrivacyError: The object is not known to be stored.
        """
        ...

    def exists(self) -> bool:
        """Return whether a release has ever been registered here."""
        ...

    def names(self) -> list[str]:
        """Return the names of all objects, sorted."""
        ...

    def read_all(self) -> dict[str, bytes]:
        """Return every object by name."""
        ...


def register_location() -> str:
    """Return where releases are registered: VOXVEIL_LEDGER, else ``ledger`` in the project's root.

    The root is found upwards from the working directory, so that one project has one register
    whichever of its folders a release is made in.
    """
    chosen = os.environ.get("VOXVEIL_LEDGER")
    if chosen:
        return chosen
    return str(project_root() / "ledger")


def open_register(location: str | None = None) -> Register:
    """Return the register at ``location`` (a folder or ``s3://bucket/prefix``).

    Args:
        location: Where; by default :func:`register_location`. Nothing is written yet.

    Raises:
        PrivacyError: The location is of another kind.
    """
    address = register_location() if location is None else location
    if not address.strip():
        raise PrivacyError(
            "the register's location is empty; must be a folder or s3://BUCKET/PREFIX; nothing was released"
        )
    if address.startswith("s3://"):
        return S3Register(address)
    if "://" in address:
        raise PrivacyError(
            f"register {address}: must be a folder or s3://BUCKET/PREFIX; nothing was released"
        )
    return FolderRegister(Path(address))


class FolderRegister:
    """A register in a folder; the first release creates the folder, its parent must exist.

    Args:
        folder: Where the objects lie as ``RELEASE.json``.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = Path(folder)
        self.location = str(folder)

    def create(self, name: str, content: bytes) -> None:
        """Store ``content`` under ``name``: written aside, flushed, then linked, which is exclusive."""
        _require_name(name)
        path = self._folder / f"{name}{_SUFFIX}"
        partial = self._folder / f".{name}.{os.getpid()}.partial"
        try:
            if not self._folder.is_dir():
                self._folder.mkdir(exist_ok=True)
                _sync_folder(self._folder.absolute().parent)
            try:
                with partial.open("xb") as handle:
                    handle.write(content)
                    handle.flush()
                    os.fsync(handle.fileno())
                # A rename would replace an object of the same name; a hard link refuses to.
                os.link(partial, path)
            finally:
                partial.unlink(missing_ok=True)
            _sync_folder(self._folder)
            stored = path.read_bytes()
        except FileExistsError:
            raise PrivacyError(f"register {path}: exists already; nothing was released") from None
        except OSError as error:
            reason = error.strerror or error
            raise PrivacyError(
                f"register {self.location}: cannot be written ({reason}); nothing was released"
            ) from None
        if stored != content:
            raise PrivacyError(f"register {path}: reads back differently; nothing was released")

    def exists(self) -> bool:
        """Return whether the folder exists."""
        return self._folder.exists()

    def names(self) -> list[str]:
        """Return the release ids in the folder, sorted; an absent folder has none."""
        if not self.exists():
            return []
        try:
            found = sorted(path.name for path in self._folder.iterdir())
        except OSError as error:
            raise PrivacyError(
                f"register {self.location}: cannot be read ({error.strerror or error})"
            ) from None
        return [name.removesuffix(_SUFFIX) for name in found if _is_object(name)]

    def read_all(self) -> dict[str, bytes]:
        """Return every object by release id."""
        objects: dict[str, bytes] = {}
        for name in self.names():
            path = self._folder / f"{name}{_SUFFIX}"
            try:
                objects[name] = path.read_bytes()
            except OSError as error:
                raise PrivacyError(f"register {path}: cannot be read ({error.strerror or error})") from None
        return objects


class S3Register:
    """A register in an S3 bucket (endpoint: AWS_ENDPOINT_URL_S3, AWS_ENDPOINT_URL or AWS itself).

    Args:
        location: ``s3://BUCKET`` or ``s3://BUCKET/PREFIX``.
    """

    def __init__(self, location: str) -> None:
        try:
            address = S3Uri.parse(location, name="register", whole_bucket=True)
        except InputError as error:
            raise PrivacyError(f"{error}; nothing was released") from None
        self.location = location
        self._bucket = address.bucket
        self._prefix = address.key("")
        self._client: Any = None

    def create(self, name: str, content: bytes) -> None:
        """Store ``content`` under ``name`` with ``If-None-Match: *``, then read it back."""
        _require_name(name)
        key = f"{self._prefix}{name}{_SUFFIX}"
        with self._reported("written", "; nothing was released"):
            try:
                self._connect().put_object(
                    Bucket=self._bucket,
                    Key=key,
                    Body=content,
                    ContentType="application/json",
                    IfNoneMatch="*",
                )
            except Exception as error:
                # A repeated request whose first try had succeeded is refused as well: read it back.
                if s3_status(error) not in (409, 412):
                    raise
        with self._reported("read back", "; nothing was released"):
            stored = self._get(key)
        if stored != content:
            raise PrivacyError(f"register s3://{self._bucket}/{key}: exists already; nothing was released")

    def exists(self) -> bool:
        """Return whether any object exists under the prefix."""
        return bool(self.names())

    def names(self) -> list[str]:
        """Return the release ids under the prefix, sorted."""
        with self._reported("listed"):
            lister = self._connect().get_paginator("list_objects_v2")
            pages = lister.paginate(Bucket=self._bucket, Prefix=self._prefix)
            keys = [item["Key"] for page in pages for item in page.get("Contents", ())]
        found = [key.removeprefix(self._prefix) for key in keys]
        return sorted(name.removesuffix(_SUFFIX) for name in found if _is_object(name))

    def read_all(self) -> dict[str, bytes]:
        """Return every object by release id."""
        names = self.names()
        with self._reported("read"), ThreadPoolExecutor(8) as pool:
            bodies = list(pool.map(lambda name: self._get(f"{self._prefix}{name}{_SUFFIX}"), names))
        return dict(zip(names, bodies, strict=True))

    def _get(self, key: str) -> bytes:
        return bytes(self._connect().get_object(Bucket=self._bucket, Key=key)["Body"].read())

    def _connect(self) -> Any:
        if self._client is None:
            with self._reported("reached", "; nothing was released"):
                self._client = s3_client(read_timeout=10, attempts=2)
        return self._client

    @contextmanager
    def _reported(self, what: str, consequence: str = "") -> Iterator[None]:
        """Report a failure of the store as a PrivacyError: what could not be done, and what follows."""
        try:
            yield
        except MissingExtraError:
            raise
        except Exception as error:
            fault = s3_fault(f"register {self.location}", what, error)
            raise PrivacyError(f"{fault}{consequence}") from None


def _is_object(name: str) -> bool:
    return name.endswith(_SUFFIX) and _NAME.match(name.removesuffix(_SUFFIX)) is not None


def _require_name(name: str) -> None:
    if not _NAME.match(name):
        raise PrivacyError(f"a release id has 32 hexadecimal digits, got {name!r}; nothing was released")


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
