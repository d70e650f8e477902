"""What the names `linux:`, `bpf:`, `lib:` and `python:` of a scenario mean, and how the extension module gets to know them.

A scenario names an algorithm by `cc`. The extension module refuses a name of these kinds that is not registered in the
process. So `provide` registers what a document names before it is read. Paths in a document are absolute from then on.
"""

import hashlib
import json
import os
import re
import signal
import socket
import subprocess
import sys
import tomllib
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from elephan import _core
from elephan.base.text import toml

LINUX, BPF, LIB, PYTHON = KINDS = tuple(_core.FOREIGN_KINDS)
# Languages of which `lib:` compiles a file on the spot.
COMPILED = (".c", ".cc", ".cpp", ".cxx")

# The engines on which a name of Linux means the kernel's own.
KERNELS = {"linux", "kernel"}

# An object that cannot be opened is for the extension module, which has the words for it.
OPENS = """
import ctypes, sys
try:
    ctypes.CDLL(sys.argv[1])
except OSError:
    pass
"""

# The digest of the object, or of the Python source, under which each name is registered.
_digests: dict[str, str] = {}


def mentioned(text: str) -> bool:
    """Whether a text may name such an algorithm. If not, it need not be parsed."""
    return any(kind in text for kind in KINDS)


def named(document: Any) -> dict[str, str]:
    """The algorithms from outside that a document names, and the first key of each."""
    found: dict[str, str] = {}

    def note(name: str, key: str) -> str:
        found.setdefault(name, key)
        return name

    _mapped(document, "", note)
    return found


def absolute(name: str, folder: Path) -> str:
    """The name with its path made absolute; a relative one starts from `folder`.

    A Python module becomes a path if `folder` has its file. Otherwise it stays as it is, and has to be installed.
    """
    kind = next(kind for kind in KINDS if name.startswith(kind))
    rest, attribute = name.removeprefix(kind), ""
    if kind == PYTHON:
        rest, colon, attribute = rest.rpartition(":")
        attribute = colon + attribute
        file = Path(*rest.split(".")).with_suffix(".py") if rest else Path("?")
        if not _is_path(rest) and (folder / file).is_file():
            rest = str(file)
    if not _is_path(rest) and kind in (LINUX, PYTHON):
        return name
    return f"{kind}{os.path.normpath(folder / Path(rest).expanduser())}{attribute}"


def _is_path(text: str) -> bool:
    return "/" in text or text.startswith("~") or text.endswith((".c", ".py"))


def provide(
    document: Mapping[str, Any], settings: Mapping[str, str], file: str, folder: Path
) -> tuple[dict[str, Any], dict[str, str]]:
    """The document and the settings with absolute paths, after every algorithm that they name was registered.

    Paths of the document start from `folder`, those of the settings from the current one. `file` is its name in errors.
    Raises `ScenarioError` with a line for each algorithm that cannot be had.
    """
    whole: dict[str, Any] = _mapped(document, "", lambda name, _: absolute(name, folder))
    settings = {key: _setting(key, text) for key, text in settings.items()}
    every, values = named(whole), {key: _value(text) for key, text in settings.items()}
    for key, value in values.items():
        every |= dict.fromkeys(named({key: value}), key)
    engines = _engines(whole, settings)
    problems = [
        f"{file}: {key}: expected a whole number, found {value:g}"
        for key, value in (*_fractions(whole), *_fractions(values))
    ]
    for name, key in every.items():
        if name.startswith(LINUX) and not _is_path(name):
            if "linux" in engines and kernel_has(name.removeprefix(LINUX)):
                _core.add_linux_name(name)
            if not engines - KERNELS:
                continue
        try:
            register(name)
        except ValueError as error:
            problems.append(f"{file}: {key}: {error}")
        except OSError as error:
            told = f"{error.filename}: {error.strerror}" if error.filename is not None else f"{error}"
            problems.append(f"{file}: {key}: {told}")
    if problems:
        raise _core.ScenarioError("\n".join(problems))
    return whole, settings


def _engines(document: Mapping[str, Any], settings: Mapping[str, str]) -> set[str]:
    """The engines on which the scenario may run, points of its sweep included."""
    found = {str(settings.get("engine", document.get("engine", "sim"))).strip("\"'")}

    def note(value: Any, key: str) -> None:
        if isinstance(value, Mapping):
            for name, inner in value.items():
                note(inner, name)
        elif isinstance(value, list):
            for inner in value:
                note(inner, key)
        elif key == "engine":
            found.add(str(value))

    note(document.get("sweep", {}), "")
    for key, text in settings.items():
        if key.startswith("sweep"):
            note(_value(text), key.rpartition(".")[2])
    return found


def _mapped(value: Any, key: str, change: Callable[[str, str], str]) -> Any:
    """A document with `change`, of name and key, in place of each name of an algorithm from outside."""
    if isinstance(value, Mapping):
        below = f"{key}." if key else ""
        return {name: _mapped(inner, f"{below}{name}", change) for name, inner in value.items()}
    if isinstance(value, list):
        # A list in a sweep has the values of a key; another has tables, which errors number.
        numbered = not key.startswith("sweep")
        return [_mapped(one, f"{key}.{n}" if numbered else key, change) for n, one in enumerate(value)]
    if isinstance(value, str) and value.startswith(KINDS) and _is_cc(key):
        return change(value, key.removesuffix(".name"))
    return value


def _fractions(value: Any, key: str = "") -> Iterator[tuple[str, float]]:
    """The parameters of Linux's modules in a document that are no whole numbers, by their keys."""
    if isinstance(value, list):
        for n, one in enumerate(value):
            yield from _fractions(one, f"{key}.{n}")
    elif isinstance(value, Mapping):
        is_module = _is_cc(key) and str(value.get("name")).startswith(LINUX)
        for name, inner in value.items():
            below = f"{key}.{name}" if key else name
            if is_module and isinstance(inner, float) and not inner.is_integer():
                yield below, inner
            yield from _fractions(inner, below)


def _is_cc(key: str) -> bool:
    parts = [part for part in key.split(".") if not part.isdecimal()]
    return parts[-1:] == ["cc"] or parts[-2:] == ["cc", "name"]


def _value(text: str) -> Any:
    """The value of a setting, as the extension module reads it: TOML, or else text."""
    try:
        return tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        return text


def _setting(key: str, text: str) -> str:
    value = _value(text)
    changed = _mapped({key: value}, "", lambda name, _: absolute(name, Path.cwd()))[key]
    return text if changed == value else changed if isinstance(changed, str) else toml(changed)


def register(name: str) -> None:
    """Build or open the algorithm of a name with an absolute path, and register it with the extension module.

    An object that is registered already is kept. A name of Linux that no imported source has is left to the extension module,
    which refuses it. Raises `ValueError` if the algorithm cannot be had; the message says what was expected and what was found.
    """
    kind = next(kind for kind in KINDS if name.startswith(kind))
    rest = name.removeprefix(kind)
    if kind == PYTHON:
        from elephan.foreign import controllers  # noqa: PLC0415 - imports the user's module

        _digests[name] = controllers.register(name, rest, _digests.get(name))
        return
    found = _object(kind, rest)
    if found is None:
        return
    digest = hashlib.blake2b(found.read_bytes(), digest_size=16).hexdigest()
    if _digests.get(name) != digest:
        if kind == LIB:
            _try(found, rest)
        try:
            _core.register_object(name, found)
        except ValueError as error:
            # The file that the user knows, in place of its copy in the cache.
            raise ValueError(str(error).replace(str(found), rest)) from error
        _digests[name] = digest


def _try(path: Path, name: str) -> None:
    """Open an object in a process of its own first: a constructor may crash, exit, or go on for ever. Raises `ValueError`."""
    command = [sys.executable, "-I", "-S", "-c", OPENS, str(path)]
    code = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, check=False).returncode
    if code:
        raise ValueError(f"{name}: expected an object that opens, found {ended(code)} in its constructor")


def ended(code: int) -> str:
    """How a process ended, by its exit code."""
    return signal.Signals(-code).name if code < 0 else f"exit code {code}"


def _object(kind: str, rest: str) -> Path | None:
    """The shared object of an algorithm; None if no imported source of Linux has it."""
    from elephan.foreign import bpf, build, modules  # noqa: PLC0415 - compilers are not needed without such names

    if kind == LINUX:
        return modules.module(rest)
    path = Path(rest)
    if not path.is_file():
        raise ValueError(f"expected a file, found none at {path}")
    if kind == BPF:
        return bpf.shared(path)
    return build.shared([path]) if path.suffix in COMPILED else build.kept(path)


def used(document: Mapping[str, Any]) -> list[str]:
    """The registered algorithms that a scenario's document names; those of Linux are the kernel's own where it runs on one."""
    own = LINUX if document["engine"] in KERNELS else ()
    return [name for name in sorted(named(document)) if name in _digests and not name.startswith(own)]


def digests(text: str) -> str:
    """What identifies the algorithms from outside in a scenario (JSON), for the key of a stored run; empty if it names none."""
    return "".join(f" {name} {_digests[name]}" for name in used(json.loads(text))) if mentioned(text) else ""


def provide_all(text: str) -> None:
    """Register what a scenario (JSON, with absolute paths) names: for a worker, to which it was sent.

    Raises `ScenarioError` as `provide` does.
    """
    if mentioned(text):
        provide(json.loads(text), {}, "scenario", Path.cwd())


def kernel_has(name: str) -> bool:
    """Whether a socket of the running kernel can request an algorithm. The kernel loads its module for that, if root asks."""
    if not hasattr(socket, "TCP_CONGESTION") or not re.fullmatch(r"[\w-]{1,15}", name, re.ASCII):
        return False
    with socket.socket() as one:
        try:
            one.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, name.encode())
        except OSError:
            return False
    return True


def refused(document: Any, *, engine: str) -> Iterator[str]:
    """A line for each algorithm from outside in a document that nobody who may load code has written.

    Linux's own on a kernel are allowed: nothing is loaded for them.
    """
    for name, key in named(document).items():
        if not (engine == "kernel" and name.startswith(LINUX) and not _is_path(name)):
            yield f"{key}: expected an algorithm of Elephan on this page, found {json.dumps(name)}; use the command line"
