"""The results folder, as a page sees it: names of results, and what they say. Nothing outside it."""

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from elephan.report import Content, kind_of, read, read_beside

# How deep results lie: results/NAME, results/GROUP/NAME, a run within a sweep.
DEEPEST = 3


class Library:
    """Results under one folder."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def all(self) -> list[dict[str, Any]]:
        """All results, newest first: name, kind, title and when they were written."""
        found = list(self._under(self.root, 1)) if self.root.is_dir() else []
        return sorted(found, key=lambda entry: str(entry["written"]), reverse=True)

    def _under(self, folder: Path, depth: int) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = []
        for inner in sorted(folder.iterdir()):
            if inner.name.startswith(".") or inner.is_symlink() or not inner.is_dir():
                continue
            kind = kind_of(inner)
            if kind is not None:
                found.append(self._entry(inner, kind))
            elif depth < DEEPEST:
                found.extend(self._under(inner, depth + 1))
        return found

    def _entry(self, folder: Path, kind: str) -> dict[str, Any]:
        written = datetime.fromtimestamp(folder.stat().st_mtime, UTC)
        title = folder.name
        if kind == "run":
            title = json.loads((folder / "run.json").read_text(encoding="utf-8"))["scenario"]["name"]
        name = folder.relative_to(self.root).as_posix()
        return {"name": name, "kind": kind, "title": title, "written": written.isoformat(timespec="seconds")}

    def folder(self, name: str) -> Path | None:
        """The folder of a result; none where there is none of that name within the results folder."""
        root = self.root.resolve()
        if "\0" in name:
            return None
        folder = (root / name).resolve()
        if folder == root or not folder.is_relative_to(root) or not folder.is_dir() or kind_of(folder) is None:
            return None
        return folder

    def content(self, names: list[str]) -> Content | None:
        """What a result says, or what several runs say beside each other; none where one of the names has no result."""
        found = [folder for folder in map(self.folder, names) if folder is not None]
        if not found or len(found) < len(names):
            return None
        return read(found[0]) if len(found) == 1 else read_beside(found)
