"""Congestion control modules of Linux, compiled unmodified from the user's own source of a kernel.

    from elephan.foreign import modules

    modules.import_tree("/usr/src/linux-source-6.1.tar.xz")
    modules.module("illinois")

`modules/linux.h` declares what modules use of their kernel, `modules/kernel.c` defines it, and `modules/shim.c` makes each an
algorithm of `elephan-cc.h`. What differs between versions of Linux is read from a module's text. An import copies
`net/ipv4/tcp_*` into the cache; the newest import is used.
"""

import hashlib
import json
import lzma
import os
import re
import tarfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from elephan.base.folders import new_folder
from elephan.base.text import Terminal
from elephan.foreign import build

HERE = Path(__file__).parent / "modules"
# What makes a module an algorithm. The last begins when the module's parameters are known.
SHIM = (HERE / "kernel.c", HERE / "shim.c")
DEBIAN_SOURCES = Path("/usr/src")
DOCUMENT = "source.json"
# What an import copies.
WANTED = re.compile(r"(?:^|/)net/ipv4/(tcp_\w+\.[ch])$")
# Of such a file, ten times the largest of Linux 6.12. A tarball may expand without end.
MOST_BYTES = 3_000_000
MAKEFILE = re.compile(r"^(?:\./)?(?:[^/]+/)?Makefile$")
# What makes a file a module.
REGISTERS = re.compile(r"\btcp_register_congestion_control\s*\(\s*&")
INCLUDED = re.compile(r"^\s*#\s*include\s*<([^>]+/[^>]+)>", re.MULTILINE)
EXPORTED = re.compile(r"^EXPORT_SYMBOL(?:_GPL)?\s*\(\s*(\w+)\s*\)", re.MULTILINE)
FLAGS = (
    *("-std=gnu11", "-ffreestanding", "-fno-strict-aliasing", "-fwrapv", "-fvisibility=hidden"),
    # gcc before 14 only warns of these, and the object could not be opened.
    *("-Werror=implicit-function-declaration", "-Werror=incompatible-pointer-types", "-Werror=int-conversion"),
)


@dataclass(frozen=True)
class Tree:
    """An imported source of a kernel."""

    # Its folder in the cache, with the files of `net/ipv4`.
    folder: Path
    # What was imported: a folder or a tarball.
    source: str
    # The version that its Makefile has, such as `6.1.153`; empty without one.
    version: str

    def modules(self) -> dict[str, Path]:
        """The file of each congestion control module, by its name, such as `cubic`."""
        files = sorted(self.folder.glob("tcp_*.c"))
        return {file.stem.removeprefix("tcp_"): file for file in files if REGISTERS.search(_text(file))}


def import_tree(path: str | Path) -> Tree:
    """Copy what modules need from a kernel's source: a folder, a tarball, or a package of Debian such as linux-source-6.1.

    It is the one that is used from now on. Raises `ValueError` if it has no congestion control module, and `OSError`.
    """
    path = _place(str(path))
    if path.is_dir():
        files, makefile = _from_folder(path)
    else:
        try:
            files, makefile = _from_tarball(path)
        except (tarfile.TarError, lzma.LZMAError, EOFError) as error:
            raise ValueError(f"{path}: expected a kernel's source, as a folder or a tarball; found {error}") from error
    if not any(REGISTERS.search(text.decode(errors="replace")) for text in files.values()):
        raise ValueError(
            f"{path}: expected a kernel's source, with net/ipv4/tcp_*.c; found no congestion control module"
        )
    digest = hashlib.sha256()
    for name, text in sorted(files.items()):
        digest.update(name.encode() + b"\0" + text + b"\0")
    place = _sources() / digest.hexdigest()[:16]

    def store() -> None:
        with new_folder(place) as new:
            for name, text in files.items():
                (new / name).write_bytes(text)
            document = {"source": str(path.resolve()), "version": _version(makefile)}
            (new / DOCUMENT).write_text(json.dumps(document) + "\n", encoding="utf-8")

    build.store_once(place / DOCUMENT, store)
    # The kernel's own time of a change has steps of milliseconds.
    os.utime(place / DOCUMENT, ns=(time.time_ns(), time.time_ns()))
    return _tree(place)


def trees() -> list[Tree]:
    """The imported sources, the newest import first."""
    documents = _sources().glob(f"*/{DOCUMENT}")
    return [_tree(one.parent) for one in sorted(documents, key=lambda one: one.stat().st_mtime_ns, reverse=True)]


def current() -> Tree | None:
    """The source of which names are used: that of the newest import, or else of Debian's newest installed package.

    The package is imported when it is needed first, with a message to standard error. None if there is neither.
    """
    if imported := trees():
        return imported[0]
    packages = [*DEBIAN_SOURCES.glob("linux-source-*.tar.*"), *DEBIAN_SOURCES.glob("linux-source-*/")]
    if not packages:
        return None
    newest = max(packages, key=lambda one: [int(number) for number in re.findall(r"\d+", one.name)])
    Terminal(stderr=True).message(f"{newest}: importing its congestion control modules")
    return import_tree(newest)


def module(name: str) -> Path | None:
    """The shared object of a module, compiled if it is not in the cache: by the name of Linux, or by the path of a C file.

    None if no source is imported that has the name. Raises `ValueError` if it does not compile: the compiler's first error, and
    what the module needs and our header lacks.
    """
    if name.endswith(".c") or "/" in name:
        file = Path(name)
        if not file.is_file():
            raise ValueError(f"{name}: expected a C file, found none")
        return _compiled(file)
    tree = current()
    found = tree.modules().get(name) if tree is not None else None
    return None if tree is None or found is None else _compiled(found, tree.version)


def probe(tree: Tree) -> Iterator[tuple[str, Path | ValueError]]:
    """Compile each module of a source: its name, and its object or why it does not compile."""
    for name, file in tree.modules().items():
        try:
            yield name, _compiled(file, tree.version)
        except ValueError as error:
            yield name, error


def _compiled(file: Path, version: str | None = None, flags: tuple[str, ...] = ()) -> Path:
    """The object of a file, which belongs to a source of this version or, if that is None, is the user's own."""
    text = _text(file)
    if not REGISTERS.search(text):
        raise ValueError(f"{file}: expected a module that calls tcp_register_congestion_control(), found no such call")
    headers = [file.parent / name for name in build.QUOTED.findall(text)]
    text += "".join(_text(header) for header in headers if header.is_file())
    helpers = {one: _text(one) for one in _helpers(file, text)}
    # Each header of the kernel is ours.
    names = INCLUDED.findall(text + "".join(helpers.values()))
    texts = dict.fromkeys(names, '#include "linux.h"\n')
    for one, helper in helpers.items():
        texts[f"helper_{one.name}"] = f'#define ELEPHAN_HELPER\n#line 1 "{one}"\n{helper}'
    source = file.name if version is None else f"net/ipv4/{file.name} of Linux {version}".rstrip()
    flags += (f"-DELEPHAN_SOURCE={json.dumps(source)}",)
    if _has_four_arguments(text):
        flags += ("-DELEPHAN_CONG_CONTROL_OF_FOUR",)
    if not re.search(r"\brate_sample\b|\bin_flight\b", text):
        flags += ("-DELEPHAN_NO_RATE",)
    if "sk_pacing_rate" not in text:
        flags += ("-DELEPHAN_NO_PACING_RATE",)
    return build.shared((file, *SHIM), flags=(*FLAGS, *flags), folders=(HERE, file.parent), texts=texts)


def _helpers(file: Path, text: str) -> list[Path]:
    """Other modules beside a file of which it calls exported functions, as tcp_yeah.c does of tcp_vegas.c."""
    words = set(re.findall(r"\w+", text))
    others = [one for one in sorted(file.parent.glob("tcp_*.c")) if one.name != file.name]
    return [
        one for one in others if REGISTERS.search(other := _text(one)) and not words.isdisjoint(EXPORTED.findall(other))
    ]


def _has_four_arguments(text: str) -> bool:
    """Whether `cong_control` has the arguments of Linux 6.10 and newer: socket, ACK, flags, sample."""
    member = re.search(r"\.cong_control\s*=\s*(?:\([^)]*\)\s*)?(\w+)", text)
    function = member and re.search(rf"\b{member[1]}\s*\(([^)]*)\)\s*\{{", text)
    return function is not None and function[1].count(",") == 3


def _place(source: str) -> Path:
    """The folder or tarball that the user means."""
    path = Path(source)
    if path.exists() or not re.fullmatch(r"linux-source-[\d.]+", source):
        return path
    found = [*DEBIAN_SOURCES.glob(f"{source}.tar.*"), *DEBIAN_SOURCES.glob(f"{source}/")]
    if not found:
        expected = DEBIAN_SOURCES / f"{source}.tar.xz"
        raise ValueError(f"{source}: expected {expected}, found none; apt-get install {source}")
    return found[0]


def _from_folder(path: Path) -> tuple[dict[str, bytes], str]:
    files = {one.name: one.read_bytes() for one in sorted((path / "net" / "ipv4").glob("tcp_*.[ch]"))}
    makefile = path / "Makefile"
    return files, _text(makefile) if makefile.is_file() else ""


def _from_tarball(path: Path) -> tuple[dict[str, bytes], str]:
    """The wanted files, and the text of the first Makefile. Reading ends after the folder with the files."""
    files: dict[str, bytes] = {}
    makefile = ""
    with tarfile.open(path, "r|*") as tarball:
        for member in tarball:
            found = WANTED.search(member.name)
            if files and "net/ipv4/" not in member.name:
                break
            if not member.isfile() or not (found or (not makefile and MAKEFILE.match(member.name))):
                continue
            if member.size > MOST_BYTES:
                raise ValueError(
                    f"{path}: expected files of at most {MOST_BYTES} bytes, found {member.name} of {member.size}"
                )
            read = tarball.extractfile(member)
            assert read is not None
            if found:
                files[found[1]] = read.read()
            else:
                makefile = read.read().decode(errors="replace")
    return files, makefile


def _version(makefile: str) -> str:
    parts = [re.search(rf"^{key}\s*=\s*(\d+)", makefile, re.MULTILINE) for key in ("VERSION", "PATCHLEVEL", "SUBLEVEL")]
    return ".".join(part[1] for part in parts if part)


def _sources() -> Path:
    return build.folder() / "linux"


def _tree(folder: Path) -> Tree:
    document = json.loads(_text(folder / DOCUMENT))
    return Tree(folder, document["source"], document["version"])


def _text(file: Path) -> str:
    return file.read_text(encoding="utf-8", errors="replace")
