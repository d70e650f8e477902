"""The results folder as the page sees it: names of results and their content. Nothing outside it is accessible."""

import os
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from elephan._core import ScenarioError
from elephan.base.documents import damage
from elephan.base.kinds import kind_of
from elephan.report.content import Content
from elephan.report.read import read, read_beside

# The depth of results: results/NAME, results/GROUP/NAME, a run within a sweep.
DEEPEST = 3


class Library:
    """The results under one folder."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def all(self) -> list[dict[str, Any]]:
        """All results, newest first: name, kind, title, time of writing, and the reason if a result cannot be read."""
        found = list(self._under(self.root, 1)) if self.root.is_dir() else []
        return sorted(found, key=lambda entry: str(entry["written"]), reverse=True)

    def _under(self, folder: Path, depth: int) -> Iterator[dict[str, Any]]:
        for inner in sorted(folder.iterdir()):
            if inner.name.startswith(".") or inner.is_symlink() or not inner.is_dir():
                continue
            kind = None
            try:
                with damage(inner):
                    kind = kind_of(inner)
                    if kind is not None:
                        yield self._entry(inner, kind.name, kind.title_of(inner), "")
                    elif depth < DEEPEST:
                        yield from self._under(inner, depth + 1)
            except (ScenarioError, OSError) as error:
                yield self._entry(inner, kind.name if kind else "folder", inner.name, str(error))

    def _entry(self, folder: Path, kind: str, title: str, problem: str) -> dict[str, Any]:
        name = folder.relative_to(self.root).as_posix()
        written = ""
        if folder.is_dir():
            written = datetime.fromtimestamp(folder.stat().st_mtime, UTC).isoformat(timespec="seconds")
        return {
            "name": _text(name),
            "kind": kind,
            "title": _text(title),
            "written": written,
            "problem": _text(problem.replace(f"{self.root}{os.sep}", "")),
        }

    def folder(self, name: str) -> Path | None:
        """The folder of a result; None if the results folder has no result of this name."""
        if "\0" in name:
            return None
        root, folder = os.path.realpath(self.root), os.path.realpath(self.root / name)
        # A name that the file system does not allow, such as one of 5000 characters, is not a folder either.
        if folder == root or os.path.commonpath([root, folder]) != root or not os.path.isdir(folder):  # noqa: PTH112
            return None
        return Path(folder) if kind_of(Path(folder)) is not None else None

    def content(self, names: list[str]) -> Content | None:
        """The content of a result, or of several runs side by side; None if one of the names has no result.

        Raises `ScenarioError` for damaged results.
        """
        found = {name: folder for name in names if (folder := self.folder(name)) is not None}
        if not found or len(found) < len(set(names)):
            return None
        if len(set(found.values())) < len(names):
            raise ScenarioError("name: expected different results, found one twice")
        return read(*found.values()) if len(found) == 1 else read_beside(found)


def _text(text: str) -> str:
    """A text from the disk as valid JSON: file names can be any bytes, and JSON files can have lone surrogates."""
    return text.encode("utf-8", "replace").decode()
