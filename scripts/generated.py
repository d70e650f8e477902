"""Refuses what a command generates among the files under version control; part of `make lint`.

Committed all the same: the built page (python/elephan/ui/static), for users without Node; pictures that pages show, as PNG of
some 50 kB, so that pages read well in the repository; the archive of verdicts (docs/reproduction), whose runs take hours; and
what follows from Rust in Python, which `declared.py --check` compares.
"""

import re
import subprocess
import sys
from collections.abc import Iterator
from fnmatch import fnmatch
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
REFUSED = {
    "*.svg": "a drawing: a page shows a PNG of some 50 kB, and what nobody reads in the repository is drawn by `make docs`",
    "docs/reproduction/*.md": "pages of verdicts, which `make docs` writes from the reports",
    "*.down": "a trace that is drawn on use",
}
# The size above which a file is hardly written by hand, in bytes, and the files that may be larger.
LARGE = 300_000
ARCHIVE = "docs/reproduction/*.json"


def refused(root: Path) -> Iterator[str]:
    """A line for each generated file: its name and the reason."""
    names = subprocess.run(["git", "ls-files", "-z"], cwd=root, check=True, capture_output=True, text=True).stdout
    for name in filter(None, names.split("\0")):
        file = root / name
        if not file.is_file():
            continue
        yield from (f"{name}: {reason}" for pattern, reason in REFUSED.items() if fnmatch(name, pattern))
        if (size := file.stat().st_size) > LARGE and not fnmatch(name, ARCHIVE):
            yield f"{name}: expected at most {LARGE:,} bytes, found {size:,}"
        if name.endswith(".md") and (end := re.search(r"<!-- /[\w-]+ -->", file.read_text(encoding="utf-8"))):
            yield f"{name}: text before {end[0]}: `make docs` fills a copy of the page; here a marker is one line"


if __name__ == "__main__":
    found = list(refused(ROOT))
    print(*found, sep="\n", end="\n" if found else "")
    sys.exit(bool(found))
