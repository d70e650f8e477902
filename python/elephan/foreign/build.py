"""Compiles C and C++ files to shared objects, once: the cache of the user keeps them.

An object is found by its sources with all files that they include by quotes, the flags, and the compiler's version. Objects
that somebody else compiled are copied into the cache, under their content, so that a process can open a changed file beside the
old one.
"""

import hashlib
import os
import re
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path

from elephan.base.folders import new_file

# `elephan-cc.h`.
INCLUDE = Path(__file__).parent / "include"
CPP_SUFFIXES = {".cc", ".cpp", ".cxx"}
FLAGS = ("-O2", "-fPIC", "-shared")
LIBRARIES = ("-Wl,-z,defs", "-lm", "-ldl", "-lpthread")

QUOTED = re.compile(r'^\s*#\s*include\s*"([^"]+)"', re.MULTILINE)
ERROR = re.compile(r"^(?P<file>[^:\n]+):(?P<line>\d+):(?:\d+:)? (?:fatal )?error: (?P<text>.*)$", re.MULTILINE)
# How gcc and clang name what is not declared.
MISSING = re.compile(
    r"(?:unknown type name|no member named|implicit declaration of function|call to undeclared function"
    r"|undeclared identifier|variable has incomplete type|incomplete definition of type) '([^']+)'"
    r"|error: '(\w+)' undeclared"
    r"|undefined (?:reference to|symbol:) [`']?(\w+)"
)
# How long to wait for another process that stores the same object.
PATIENCE_S = 10.0


def folder() -> Path:
    """The folder that keeps the objects, and the imported sources of Linux."""
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "elephan" / "cc"


def compiler(*, is_cpp: bool = False) -> str:
    """The path of the compiler: that of the variable CC (CXX for C++), or else the first that is installed.

    Raises `ValueError` if there is none.
    """
    variable, names = ("CXX", ("c++", "g++", "clang++")) if is_cpp else ("CC", ("cc", "gcc", "clang"))
    chosen = os.environ.get(variable)
    for name in (chosen,) if chosen else names:
        if found := shutil.which(name):
            return found
    expected = f"the program of the variable {variable}" if chosen else f"one of {', '.join(names)}"
    raise ValueError(f"compiler: expected {expected} (apt-get install gcc), found {chosen or 'none'}")


@cache
def _version(path: str) -> str:
    return subprocess.run([path, "--version"], capture_output=True, text=True, check=False).stdout.partition("\n")[0]


def shared(
    files: Sequence[Path],
    *,
    flags: Sequence[str] = (),
    folders: Sequence[Path] = (),
    texts: Mapping[str, str] | None = None,
) -> Path:
    """Compile files to one shared object, which has the name of the first; from the cache if possible.

    `folders` are searched for headers. `texts` are more files, by their relative path: they exist while the compiler runs, and
    it compiles those that end with `.c`. Raises `ValueError` with the compiler's first error, by file and line; then nothing is
    stored.
    """
    texts = texts or {}
    path = compiler(is_cpp=any(file.suffix in CPP_SUFFIXES for file in files))
    digest = hashlib.sha256("\0".join((_version(path), *FLAGS, *flags, *LIBRARIES)).encode())
    for file in _included(files, (*folders, INCLUDE)):
        digest.update(f"\0{file}\0".encode() + file.read_bytes())
    for name, text in sorted(texts.items()):
        digest.update(f"\0{name}\0{text}".encode())
    kept = folder() / digest.hexdigest()[:16] / f"{files[0].stem}.so"
    if kept.is_file():
        return kept
    with tempfile.TemporaryDirectory() as place:
        made = Path(place) / "made.so"
        more = []
        for name, text in texts.items():
            at = Path(place) / "include" / name
            at.parent.mkdir(parents=True, exist_ok=True)
            at.write_text(text, encoding="utf-8")
            if at.suffix == ".c":
                more.append(at)
        searched = [f"-I{one}" for one in (Path(place) / "include", *folders, INCLUDE)]
        command = [path, *FLAGS, *flags, *searched, *map(str, [*more, *files]), "-o", str(made), *LIBRARIES]
        environment = os.environ | {"LC_ALL": "C"}
        done = subprocess.run(command, capture_output=True, text=True, errors="replace", check=False, env=environment)
        if done.returncode != 0:
            raise ValueError(_first_error(done.stderr, files[0]))
        _keep(kept, lambda new: shutil.copyfile(made, new))
    return kept


def kept(path: Path) -> Path:
    """A copy of a shared object in the cache, which has the place of its content."""
    data = path.read_bytes()
    place = folder() / hashlib.sha256(data).hexdigest()[:16] / path.name
    _keep(place, lambda new: new.write_bytes(data))
    return place


def _keep(place: Path, write: Callable[[Path], object]) -> None:
    def store() -> None:
        with new_file(place) as new:
            write(new)

    store_once(place, store)


def store_once(place: Path, store: Callable[[], None]) -> None:
    """Store what any other process would store with the same content; wait for one that does so now."""
    end = time.monotonic() + PATIENCE_S
    while not place.is_file():
        try:
            store()
        except FileExistsError:
            if time.monotonic() > end:
                raise
            time.sleep(0.05)


def _included(files: Iterable[Path], folders: Sequence[Path]) -> list[Path]:
    """Files with all that they include by quotes, where those exist."""
    found: list[Path] = []
    waiting = list(files)
    while waiting:
        file = waiting.pop(0)
        if file in found:
            continue
        found.append(file)
        for name in QUOTED.findall(file.read_text(encoding="utf-8", errors="replace")):
            places = [place / name for place in (file.parent, *folders)]
            waiting += [place for place in places if place.is_file()][:1]
    return found


def _first_error(said: str, file: Path) -> str:
    """The compiler's first error in one line, with the names that are missing."""
    names = dict.fromkeys(one for found in MISSING.finditer(said) for one in found.groups() if one)
    first = ERROR.search(said)
    if first is not None:
        line = f"{first['file']}:{first['line']}: {first['text']}"
    else:
        last = next((text for text in said.splitlines() if "undefined" in text), said.strip() or "the compiler failed")
        line = f"{file}: {last}"
    return f"{line}; not declared: {', '.join(names)}" if len(names) > 1 else line
