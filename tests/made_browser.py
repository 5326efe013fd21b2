"""A headless Chromium driven over its DevTools protocol: open a page, wait for what it shows, draw it."""

from __future__ import annotations

import base64
import json
import subprocess
import time
import urllib.request
from pathlib import Path
from typing import Any

import websocket


class Browser:
    """One tab; use as a context manager.

    Args:
        program: Chromium.
        folder: Profile.
        user: Name and password for every request: a page whose address holds them may not fetch.
    """

    def __init__(self, program: str, folder: Path, user: tuple[str, str] | None = None) -> None:
        self._command = [
            program, "--headless", "--no-sandbox", "--disable-gpu", "--no-first-run",
            "--window-size=1600,1200", "--disable-background-networking", "--disable-component-update",
            "--disable-sync", "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
            f"--user-data-dir={folder}", "--remote-debugging-port=0", "--remote-allow-origins=*",
        ]  # fmt: skip
        self._folder = folder
        self._user = user
        self._count = 0
        self.errors: list[str] = []

    def __enter__(self) -> Browser:
        self._process = subprocess.Popen(
            self._command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True
        )
        port_file = self._folder / "DevToolsActivePort"
        until = time.monotonic() + 60
        while not port_file.is_file() or not port_file.read_text().strip():
            assert time.monotonic() < until, "chromium did not start"
            time.sleep(0.1)
        port = port_file.read_text().split()[0]
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/json/list", timeout=30) as response:
            page = next(each for each in json.load(response) if each["type"] == "page")
        self._socket = websocket.create_connection(page["webSocketDebuggerUrl"], timeout=120)
        for domain in ("Page", "Runtime", "Network"):
            self.call(f"{domain}.enable")
        if self._user:
            token = base64.b64encode(":".join(self._user).encode()).decode()
            self.call("Network.setExtraHTTPHeaders", headers={"Authorization": f"Basic {token}"})
        return self

    def __exit__(self, *_: object) -> None:
        self._socket.close()
        self._process.kill()
        self._process.wait()

    def call(self, method: str, **params: Any) -> dict[str, Any]:
        self._count += 1
        self._socket.send(json.dumps({"id": self._count, "method": method, "params": params}))
        while True:
            message = json.loads(self._socket.recv())
            if message.get("method") == "Runtime.exceptionThrown":
                details = message["params"]["exceptionDetails"]
                self.errors.append(details.get("exception", {}).get("description", details["text"]))
            if message.get("id") == self._count:
                assert "error" not in message, message["error"]
                return message["result"]

    def evaluate(self, script: str) -> Any:
        return self.call("Runtime.evaluate", expression=script, returnByValue=True)["result"].get("value")

    def open(self, address: str, *texts: str, seconds: float = 90) -> str:
        """Open a page anew, wait until it shows every text, and return all it shows."""
        self.call("Page.navigate", url="about:blank")
        self.call("Page.navigate", url=address)
        return self.wait(*texts, seconds=seconds)

    def wait(self, *texts: str, seconds: float = 90) -> str:
        until = time.monotonic() + seconds
        shown = ""
        while time.monotonic() < until:
            shown = self.evaluate("document.body ? document.body.innerText : ''") or ""
            if all(text in shown for text in texts):
                return str(shown)
            time.sleep(0.5)
        missing = [text for text in texts if text not in shown]
        raise AssertionError(f"the page does not show {missing}; it shows:\n{shown[:3000]}")

    def click(self, text: str) -> None:
        """Click the smallest element that holds exactly this text."""
        script = f"""(() => {{
            const all = [...document.querySelectorAll('button, a, [role=tab], [role=option], span, div')];
            const found = all.filter(e => e.innerText && e.innerText.trim() === {json.dumps(text)}).pop();
            if (!found) return false;
            found.scrollIntoView({{block: 'center'}});
            const at = {{bubbles: true, cancelable: true, view: window}};
            for (const kind of ['mousedown', 'mouseup', 'click'])
                found.dispatchEvent(new MouseEvent(kind, at));
            return true;
        }})()"""
        assert self.evaluate(script), f"nothing to click says {text!r}"

    def choose(self, index: int, text: str) -> None:
        """Choose an option of the page's ``index``-th list, by typing as a person would."""
        place = self.evaluate(f"""(() => {{
            const box = document.querySelectorAll('[role=combobox]')[{index}];
            const at = box.getBoundingClientRect();
            return [at.x + at.width / 2, at.y + at.height / 2];
        }})()""")
        for kind in ("mousePressed", "mouseReleased"):
            where = {"x": place[0], "y": place[1], "button": "left", "clickCount": 1}
            self.call("Input.dispatchMouseEvent", type=kind, **where)
        time.sleep(0.5)
        self.call("Input.insertText", text=text)
        time.sleep(1)
        self.click(text)

    def wait_for(self, script: str, seconds: float = 60) -> None:
        until = time.monotonic() + seconds
        while not self.evaluate(script):
            assert time.monotonic() < until, script
            time.sleep(0.3)

    def picture(self, path: Path) -> bytes:
        data = base64.b64decode(self.call("Page.captureScreenshot", format="png")["data"])
        path.write_bytes(data)
        return data
