"""The results folder, as a page sees it: names of results, and what they say. Nothing outside it."""

import os
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from elephan._core import ScenarioError
from elephan.base.documents import damage, read_json
from elephan.report.content import Content
from elephan.report.read import kind_of, read, read_beside
from elephan.studies.sweeps.dataset import Dataset

# How deep results lie: results/NAME, results/GROUP/NAME, a run within a sweep.
DEEPEST = 3


class Library:
    """Results under one folder."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def all(self) -> list[dict[str, Any]]:
        """All results, newest first: name, kind, title, when they were written, and why they cannot be read, if so."""
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
                        yield self._entry(inner, kind, _title(inner, kind), "")
                    elif depth < DEEPEST:
                        yield from self._under(inner, depth + 1)
            except (ScenarioError, OSError) as error:
                yield self._entry(inner, kind or "folder", inner.name, str(error))

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
        """The folder of a result; none where there is none of that name within the results folder."""
        if "\0" in name:
            return None
        root, folder = os.path.realpath(self.root), os.path.realpath(self.root / name)
        # What may not be a name, such as one of 5000 characters, is no folder either.
        if folder == root or os.path.commonpath([root, folder]) != root or not os.path.isdir(folder):  # noqa: PTH112
            return None
        return Path(folder) if kind_of(Path(folder)) is not None else None

    def content(self, names: list[str]) -> Content | None:
        """What a result says, or what several runs say side by side; none where one of the names has no result.

        Raises `ScenarioError` for damaged results.
        """
        found = {name: folder for name in names if (folder := self.folder(name)) is not None}
        if not found or len(found) < len(set(names)):
            return None
        if len(set(found.values())) < len(names):
            raise ScenarioError("name: expected different results, found one twice")
        return read(*found.values()) if len(found) == 1 else read_beside(found)


def _title(folder: Path, kind: str) -> str:
    """What a result is called. Raises `ScenarioError` where it is damaged, as far as that shows in its description."""
    match kind:
        case "run":
            return str(read_json(folder, "run.json")["scenario"]["name"])
        case "sweep":
            return str(Dataset(folder).description()["name"])
        case "comparison":
            read_json(folder, "comparison.json")
    return folder.name


def _text(text: str) -> str:
    """A text of the disk as JSON takes it: names of files may be any bytes, and JSON files may have halves of characters."""
    return text.encode("utf-8", "replace").decode()
