"""Finds phrases that this project avoids (words.txt) in documents, sources and messages; part of `make lint`.

codespell checks spelling. This checks usage, including phrases that are split by a line end or between two strings.
"""

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LIST = ROOT / "scripts" / "words.txt"
KINDS = {".c", ".css", ".h", ".html", ".md", ".mjs", ".py", ".rs", ".sh", ".toml", ".ts", ".yml"}
BUILT = ("python/elephan/ui/static/", "python/elephan/studies/reproduce/scenarios/")
SPACE = r"""(?:\s|["']\s*f?["']|//[/!]?|\#(?=\s)|[*>](?=\s))+"""


def rules() -> list[tuple[re.Pattern[str], str]]:
    """The phrases of the list, and their replacements."""
    lines = [line for line in LIST.read_text(encoding="utf-8").splitlines() if line and not line.startswith("#")]
    pairs = [[part.strip() for part in line.split(" => ")] for line in lines]
    return [(re.compile(rf"\b(?:{phrase.replace(' ', SPACE)})\b", re.IGNORECASE), instead) for phrase, instead in pairs]


def files() -> list[Path]:
    """Every text file under version control that is not generated."""
    names = subprocess.run(["git", "ls-files"], cwd=ROOT, check=True, capture_output=True, text=True).stdout.split("\n")
    paths = [ROOT / name for name in names if name and not name.startswith(BUILT)]
    return [path for path in paths if path.suffix in KINDS and path.is_file()]


if __name__ == "__main__":
    phrases = rules()
    found = 0
    for path in files():
        text = path.read_text(encoding="utf-8")
        for phrase, instead in phrases:
            for match in phrase.finditer(text):
                found += 1
                line = text.count("\n", 0, match.start()) + 1
                words = " ".join(match[0].split())
                print(f"{path.relative_to(ROOT)}:{line}: expected {instead!r}, found {words!r}")
    sys.exit(bool(found))
