"""Which algorithm of a kernel a scenario's `cc` selects: a file of kernel/, or Linux's own."""

from collections.abc import Callable, Sequence

from elephan import _core
from elephan.api.registry import linux_algorithms
from elephan.kernel.loader import BPF, algorithms, known

OURS = "kernel:"
LINUX = "linux:"
# Names of Standard TCP for which Linux's own reno is used. Its recovery is selective, whatever the name.
STANDARD = ("reno", "sack")
# The names of Linux's own algorithms in a kernel that has all of them.
STOCK = tuple(entry.name.removeprefix(LINUX) for entry in linux_algorithms())
# Of the algorithms that both Linux and kernel/ have, those for which Linux's own is used where the kernel has it.
LINUX_FIRST = ("westwood", "veno", "yeah", "illinois", "dctcp")
# The longest name of an algorithm in a kernel, in bytes.
LONGEST = 15


def of_flows(
    controls: Sequence[tuple[str, str]], there: Sequence[str], name_of: Callable[[str, str], str]
) -> list[str]:
    """The name that the sockets of each flow request.

    `controls` has the name and the settings (JSON) of each flow's `cc`, and `there` the names of Linux's own algorithms that
    the kernel has. `name_of` returns the name under which the kernel has an algorithm of kernel/, or of a file
    (`bpf:PATH`), with its settings.

    Raises `ScenarioError` for an algorithm that the kernel lacks.
    """
    return [_of_flow(name, settings, there, name_of) for name, settings in controls]


def _of_flow(name: str, settings: str, there: Sequence[str], name_of: Callable[[str, str], str]) -> str:
    if name in STANDARD and settings == "{}":
        return "reno"
    if name in LINUX_FIRST and name in there and settings == "{}":
        return name
    if name.startswith(BPF):
        return name_of(name, settings)
    ours = "reno" if name in STANDARD else name.removeprefix(OURS)
    if ours in algorithms():
        return name_of(ours, settings)
    linux = name.removeprefix(LINUX)
    if linux not in there or settings != "{}":
        raise _core.ScenarioError(
            f"flow.cc: expected one of {', '.join(algorithms())}, or of the kernel's own, {', '.join(there)}, without "
            f"parameters, found {name!r}"
        )
    return linux


class Registered:
    """Names of our algorithms in a guest kernel, which registers each with its published parameters when it starts.

    `loads` has those with other parameters, which have to be registered before a run: source file without its suffix, name, and
    the values of its parameters.
    """

    def __init__(self) -> None:
        self.loads: list[tuple[str, str, list[int]]] = []
        self._names: dict[tuple[str, str], str] = {}

    def name_of(self, name: str, settings: str = "{}") -> str:
        """The name that sockets request for an algorithm with these settings (JSON)."""
        algorithm = known(name)
        if settings == "{}":
            return algorithm.registered
        key = (name, settings)
        if key not in self._names:
            file = algorithm.source.removesuffix(".bpf.c")
            self._names[key] = f"el_{len(self.loads)}_{file}"[:LONGEST]
            self.loads.append((file, self._names[key], _core.kernel_values(name, settings)))
        return self._names[key]
