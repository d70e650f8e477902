"""Insert the output of a command into a page.

`COMMAND | python scripts/insert.py PAGE MARK` replaces the text between `<!-- MARK -->` and `<!-- /MARK -->`.
"""

import sys
from pathlib import Path


def insert(page: Path, mark: str, text: str) -> None:
    """Replace the text between the marks."""
    start, end = f"<!-- {mark} -->", f"<!-- /{mark} -->"
    before, _, rest = page.read_text(encoding="utf-8").partition(start)
    _, found, after = rest.partition(end)
    if not found:
        sys.exit(f"{page}: expected {start} and {end}, found no such marks")
    page.write_text(f"{before}{start}\n\n{text.strip()}\n\n{end}{after}", encoding="utf-8")


if __name__ == "__main__":
    text = sys.stdin.read()
    insert(Path(sys.argv[1]), sys.argv[2], text)
    print(text, end="")
