"""Reads pages that the project writes, and the numbers of ``voxveil reproduce``."""

from __future__ import annotations

import json
from html.parser import HTMLParser
from pathlib import Path

VOID = {"meta", "link", "img", "source", "br"}


class Reader(HTMLParser):
    """Collects tags and text; fails on tags that do not match."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[tuple[str, dict]] = []
        self.text: list[str] = []
        self.feed(text)
        self.close()
        assert not self.open

    def handle_starttag(self, tag: str, attrs: list) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] != "style":
            self.text.append(data)


def numbers(folder: Path) -> dict[str, dict]:
    found = json.loads((folder / "results.json").read_text())["numbers"]
    assert len({each["name"] for each in found}) == len(found)
    return {each["name"]: each for each in found}
