"""Root as a user whom the permissions of files stop, for a while."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["bound_by_permissions"]

#: Of linux/capability.h: the layout's version, and the right to pass over permissions of files.
_VERSION_3 = 0x20080522
_DAC_OVERRIDE = 1 << 1


class _Header(ctypes.Structure):
    _fields_ = (("version", ctypes.c_uint32), ("pid", ctypes.c_int))


class _Rights(ctypes.Structure):
    _fields_ = (
        ("effective", ctypes.c_uint32),
        ("permitted", ctypes.c_uint32),
        ("inheritable", ctypes.c_uint32),
    )


@contextmanager
def bound_by_permissions() -> Iterator[None]:
    """Let this thread do to files only what their permissions grant; nobody but root needs that."""
    if os.geteuid() != 0:
        yield
        return
    libc, header, rights = ctypes.CDLL(None, use_errno=True), _Header(_VERSION_3, 0), (_Rights * 2)()

    def call(name: str) -> None:
        if getattr(libc, name)(ctypes.byref(header), rights):
            raise OSError(ctypes.get_errno(), name)

    call("capget")
    held = rights[0].effective
    rights[0].effective = held & ~_DAC_OVERRIDE
    call("capset")
    try:
        yield
    finally:
        rights[0].effective = held
        call("capset")
