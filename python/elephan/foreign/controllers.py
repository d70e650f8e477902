"""Algorithms in Python: `python:MODULE:CLASS` is imported, and registered with the extension module."""

import hashlib
import importlib
import importlib.util
import inspect
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

from elephan import _core
from elephan.foreign.compiled import Compiled
from elephan.foreign.controller import Controller

# The digest of the file of each module that was imported.
_imported: dict[str, str] = {}
# What the extension module calls by address is never freed.
_kept: list[Compiled] = []


def register(name: str, rest: str, before: str | None) -> str:
    """Import the class of a name, whose part after `python:` is `rest`, and register it. Returns the digest of its source.

    What is registered with the digest `before` is kept. Raises `ValueError` for what is not an algorithm.
    """
    where, colon, attribute = rest.rpartition(":")
    if not colon or not where or not attribute:
        raise ValueError(f'expected python:MODULE:CLASS or python:FILE.py:CLASS, found "{name}"')
    module = _from_path(Path(where)) if where.endswith(".py") else _installed(where)
    found = getattr(module, attribute, None)
    if not (isinstance(found, Compiled) or (isinstance(found, type) and issubclass(found, Controller))):
        what = "none" if found is None else f"{found!r}"
        raise ValueError(f"expected a subclass of elephan.cc.Controller called {attribute} in {where}, found {what}")
    digest = _digest(module, found)
    if digest == before:
        return digest
    if isinstance(found, Compiled):
        _kept.append(found)
        _core.register_table(name, found.address)
    else:
        _register_class(name, found)
    return digest


def _register_class(name: str, found: type[Controller]) -> None:
    parameters = [(key, one.meaning, one.default, one.low, one.high) for key, one in found.parameters.items()]
    for key, _, default, low, high in parameters:
        if not low <= default <= high:
            raise ValueError(
                f"{found.__name__}.parameters.{key}: expected a default from {low} to {high}, found {default}"
            )
    if found.interval_s is not None and not 0 < found.interval_s < 1e9:
        raise ValueError(f"{found.__name__}.interval_s: expected seconds above zero or None, found {found.interval_s}")
    title = (inspect.getdoc(found) or found.__name__).partition("\n")[0].removesuffix(".")
    _core.register_class(name, found, title, found.source, parameters, found.interval_s, found.governs_recovery)


def _installed(name: str) -> ModuleType:
    """A module by its name; it is imported again if its file has changed."""
    try:
        module = importlib.import_module(name)
        file = getattr(module, "__file__", None)
        if file and Path(file).is_file():
            digest = _digest_of(Path(file))
            if _imported.setdefault(name, digest) != digest:
                module = importlib.reload(module)
                _imported[name] = digest
    except (Exception, SystemExit) as error:
        raise ValueError(f"expected a module that can be imported, found {name}: {error}") from error
    return module


def _digest_of(path: Path) -> str:
    return hashlib.blake2b(path.read_bytes(), digest_size=16).hexdigest()


def _from_path(path: Path) -> ModuleType:
    """The module of a file; it is imported again if the file has changed. It can import its neighbours."""
    if not path.is_file():
        raise ValueError(f"expected a file, found none at {path}")
    digest = _digest_of(path)
    name = f"elephan_python_{hashlib.blake2b(str(path).encode(), digest_size=8).hexdigest()}"
    if _imported.get(name) == digest:
        return sys.modules[name]
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    module = importlib.util.module_from_spec(spec)
    if str(path.parent) not in sys.path:
        sys.path.append(str(path.parent))
    sys.modules[name] = module
    try:
        # Not by the loader, whose cache of compiled modules takes two edits within a second for one.
        exec(compile(path.read_bytes(), str(path), "exec"), module.__dict__)
    except (Exception, SystemExit) as error:
        del sys.modules[name]
        found = f"{type(error).__name__}: {error}"
        raise ValueError(
            f"{path}{_line(error, path)}: expected a module that can be imported, found {found}"
        ) from error
    _imported[name] = digest
    return module


def _line(error: BaseException, path: Path) -> str:
    """The line of a file at which an exception was raised, as `:12`."""
    if isinstance(error, SyntaxError) and error.lineno:
        return f":{error.lineno}"
    place, found = error.__traceback__, ""
    while place is not None:
        if place.tb_frame.f_code.co_filename == str(path):
            found = f":{place.tb_lineno}"
        place = place.tb_next
    return found


def _digest(module: ModuleType, found: Any) -> str:
    """The digest of the file of a module, and of those that a controller reads.

    Where it has none, as in a notebook, it is that of the class's own source.
    """
    file = getattr(module, "__file__", None)
    if file and Path(file).is_file():
        read = [Path(file).parent / name for name in getattr(found, "files", ())]
        for path in read:
            if not path.is_file():
                raise ValueError(f"{found.__name__}.files: expected a file, found none at {path}")
        return "".join(map(_digest_of, [Path(file), *read]))
    try:
        return hashlib.blake2b(inspect.getsource(found).encode(), digest_size=16).hexdigest()
    except (OSError, TypeError) as error:
        raise ValueError(f"expected a class whose source can be read, found {found!r}") from error
