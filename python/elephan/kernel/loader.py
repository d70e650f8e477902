"""Loads algorithms into the running kernel, and finds those that are loaded."""

import json
import os
import re
import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from elephan import _core
from elephan.kernel import build, libbpf
from elephan.kernel.errors import KernelError

BTF = Path("/sys/kernel/btf/vmlinux")
AVAILABLE = Path("/proc/sys/net/ipv4/tcp_available_congestion_control")
# The prefix of a name in a scenario that stands for a file.
BPF = "bpf:"
# The prefix of Elephan's names in a struct_ops value. No module of a kernel has it.
NAME = re.compile(rb"(el_[a-z0-9_]{1,12})\0")


@dataclass(frozen=True)
class Algorithm:
    """An algorithm of `kernel/`: its name in a scenario, its title, its source file, and the name that it registers."""

    name: str
    title: str
    source: str
    registered: str


@dataclass(frozen=True)
class Loaded:
    """A registered algorithm: the name that sockets request, an approximate number of users, and the number of its map."""

    registered: str
    users: int
    map_id: int


@cache
def algorithms() -> dict[str, Algorithm]:
    """Every algorithm of `kernel/`, by name."""
    return {entry["name"]: Algorithm(**entry) for entry in json.loads(_core.kernel_algorithms())}


def missing() -> list[str]:
    """What this machine lacks for loading algorithms, one line each: what was expected and what was found."""
    lines = []
    if not BTF.exists():
        lines.append(f"{BTF}: expected a kernel with BTF (CONFIG_DEBUG_INFO_BTF), found none")
    if os.geteuid() != 0:
        lines.append("user: expected root, which may load programs into the kernel, found another user; try sudo")
    try:
        libbpf.library()
    except KernelError as error:
        lines.append(str(error))
    if build.clang() is None and build.shipped() is None and not list(build.cache().glob("*/*.bpf.o")):
        lines.append("clang: expected it to be installed (apt-get install clang), found none")
    return lines


def need_loading() -> None:
    """Raise `KernelError` where `missing` tells something."""
    lines = missing()
    if lines:
        raise KernelError("\n".join(lines))


def need_namespaces() -> None:
    """Raise `KernelError` where this process may not make network namespaces."""
    if os.geteuid() != 0:
        raise KernelError("user: expected root, which may make namespaces, found another user; try sudo")


def known(name: str) -> Algorithm:
    """The algorithm with this name. Raises `ScenarioError` if there is none."""
    found = algorithms().get(name)
    if found is None:
        raise _core.ScenarioError(f"kernel: expected {_core.one_of(list(algorithms()), name)}, found {name!r}")
    return found


def available() -> list[str]:
    """The names that a socket can request now."""
    return AVAILABLE.read_text(encoding="ascii").split()


def load(name: str, settings: Mapping[str, float | bool | str] | None = None) -> str:
    """Load an algorithm for all programs of the machine; returns the name that sockets request.

    Raises `KernelError` if it is loaded already, if something is missing, or if the kernel refuses it.
    """
    algorithm = known(name)
    values = _core.kernel_values(name, json.dumps(dict(settings or {})))
    need_loading()
    if algorithm.registered in available():
        raise KernelError(
            f"{name}: expected it not to be loaded, found {algorithm.registered}; `elephan kernel unload {name}` first"
        )
    libbpf.register(build.compiled(algorithm.source), name, values, linked=False)
    return algorithm.registered


def loaded() -> list[Loaded]:
    """The algorithms that are registered now, including those of a run. Raises `KernelError` without root."""
    need_loading()
    found = []
    registered = available()
    for number, _, value in libbpf.maps(libbpf.STRUCT_OPS_MAP):
        match = NAME.search(value)
        if match and match[1].decode() in registered:
            # The beginning of the value is a reference count, which includes one for the registration itself.
            (references,) = struct.unpack_from("<I", value)
            found.append(Loaded(match[1].decode(), max(references - 1, 0), number))
    return found


def unload(name: str) -> None:
    """Remove an algorithm from the kernel. Connections that use it keep it until they end."""
    algorithm = known(name)
    for entry in loaded():
        if entry.registered == algorithm.registered:
            libbpf.delete(entry.map_id, name)
            return
    raise KernelError(f"{name}: expected it to be loaded, found no {algorithm.registered}")


class Held:
    """Algorithms that stay in the kernel as long as this process holds them, under names of their own.

    They disappear with the process, however it ends, because nothing is pinned.
    """

    def __init__(self) -> None:
        self._links: list[int] = []
        self._names: dict[tuple[str, str], str] = {}

    def name_of(self, name: str, settings: str = "{}") -> str:
        """The name that sockets request for an algorithm, or for a file (`bpf:PATH`), with these settings (JSON).

        It is loaded on first use.
        """
        key = (name, settings)
        if key not in self._names:
            registered = f"el_{os.getpid()}_{len(self._links)}"
            values: Sequence[int] | dict[str, float]
            if name.startswith(BPF):
                path = Path(name.removeprefix(BPF))
                data, own, values = build.made(str(path)), build.registered_name(path), json.loads(settings)
            else:
                algorithm = known(name)
                data, own = build.compiled(algorithm.source), algorithm.registered
                values = _core.kernel_values(name, settings)
            data = build.renamed(data, own, registered)
            link = libbpf.register(data, name, values, linked=True)
            assert link is not None
            self._links.append(link)
            self._names[key] = registered
        return self._names[key]

    def __enter__(self) -> "Held":
        return self

    def __exit__(self, *_: object) -> None:
        while self._links:
            os.close(self._links.pop())


def hold() -> Held:
    """Provide algorithms for the duration of a `with` block. Raises `KernelError` if something is missing."""
    need_loading()
    return Held()
