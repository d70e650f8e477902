"""Add a built site to the published ones: `versions.py SITE FOLDER VERSION`.

FOLDER has a folder for each version, `latest`, the list of versions that the site's menu reads (in the form of mike), and a
page that leads to `latest`. A version that is not newer than all others does not become `latest`.
"""

import json
import shutil
import sys
from pathlib import Path

START = (
    '<!doctype html><meta charset="utf-8"><title>Elephan</title><meta http-equiv="refresh" content="0; url=latest/">\n'
)


def number(version: str) -> tuple[int, ...]:
    """A version for comparisons."""
    return tuple(int(part) for part in version.split("."))


def add(site: Path, folder: Path, version: str) -> None:
    """Add a site as a version."""
    file = folder / "versions.json"
    known = [one["version"] for one in json.loads(file.read_text(encoding="utf-8"))] if file.is_file() else []
    known = sorted({*known, version}, key=number, reverse=True)
    for name in (version, "latest") if version == known[0] else (version,):
        shutil.rmtree(folder / name, ignore_errors=True)
        shutil.copytree(site, folder / name)
    listed = [{"version": one, "title": one, "aliases": ["latest"] if one == known[0] else []} for one in known]
    file.write_text(json.dumps(listed, indent=1) + "\n", encoding="utf-8")
    (folder / "index.html").write_text(START, encoding="utf-8")
    # GitHub Pages then serves the files as they are.
    (folder / ".nojekyll").touch()


if __name__ == "__main__":
    add(Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3])
