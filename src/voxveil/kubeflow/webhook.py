"""Notification of a run's outcome by one POST of JSON to ``VOXVEIL_WEBHOOK``.

The address often is the secret, so it is never printed. Whatever happens to the message, the run's
result stands: a receiver that is away costs one warning line.
"""

from __future__ import annotations

import json
import os
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping
from urllib.parse import urlsplit

from voxveil.runtime.errors import InputError
from voxveil.tracking.store import warn

__all__ = ["notify"]

_TRIES = 3
_TIMEOUT = 10


def notify(
    text: str,
    facts: Mapping[str, object],
    environ: Mapping[str, str] | None = None,
    sleep: Callable[[float], None] = time.sleep,
) -> bool:
    """Send a message and return whether it arrived; without ``VOXVEIL_WEBHOOK`` nothing is sent.

    Args:
        text: One line for people; chat programs show the key ``text``.
        facts: Further keys, for programs.
        environ: Environment variables; the process's unless given.
        sleep: Waits between tries.

    Raises:
        InputError: ``VOXVEIL_WEBHOOK`` is no HTTP address.
    """
    env = os.environ if environ is None else environ
    url = env.get("VOXVEIL_WEBHOOK", "").strip()
    if not url:
        return False
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.netloc:
        raise InputError("VOXVEIL_WEBHOOK: must begin with http:// or https://")
    body = json.dumps({"text": text, "run": env.get("KFP_RUN_ID", ""), **facts}, allow_nan=False).encode()
    where = f"the webhook at {parts.hostname}"
    for attempt in range(_TRIES):
        if attempt:
            sleep(2.0**attempt)
        # A new request each time: urllib keeps state in it.
        request = urllib.request.Request(url, body, {"Content-Type": "application/json"})
        try:
            with urllib.request.urlopen(request, timeout=_TIMEOUT):
                return True
        except urllib.error.HTTPError as error:
            reason = f"{error.code} {error.reason}"
            if error.code < 500 and error.code != 429:
                break
        except (urllib.error.URLError, OSError) as error:
            reason = type(getattr(error, "reason", error)).__name__
    warn(f"{where} did not take the message ({reason})")
    return False
