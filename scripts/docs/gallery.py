"""Carries out the commands of docs/gallery.md, and puts the pictures that they make into docs/images/gallery."""

import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from png import shrink

ROOT = Path(__file__).resolve().parent.parent.parent
PAGE, PICTURES = ROOT / "docs" / "gallery.md", ROOT / "docs" / "images" / "gallery"
ELEPHAN = Path(sys.executable).with_name("elephan")


def commands(text: str) -> list[str]:
    """The commands of the page, but that which goes on until it is stopped."""
    return re.findall(r"^ {4}elephan (?!ui )(.*)$", text, re.MULTILINE)


def made(text: str) -> set[str]:
    """The names of the pictures that the commands make."""
    return {name for line in commands(text) for name in re.findall(r"--out (\S+\.(?:png|svg))", line)}


def main() -> None:
    """Make the pictures."""
    text = PAGE.read_text(encoding="utf-8")
    with tempfile.TemporaryDirectory() as folder:
        for line in commands(text):
            subprocess.run([ELEPHAN, *shlex.split(line)], cwd=folder, check=True, stdout=subprocess.DEVNULL)
        PICTURES.mkdir(exist_ok=True)
        for name in made(text):
            shutil.copyfile(Path(folder) / name, PICTURES / name)
            shrink(PICTURES / name)


if __name__ == "__main__":
    main()
