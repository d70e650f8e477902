"""Algorithms as eBPF programs in the form of those in `kernel/`, compiled for the host: `bpf:./mine.bpf.c` in the simulator."""

import re
from pathlib import Path

from elephan import _core
from elephan.foreign import build

ADAPTER = Path(__file__).with_name("bpf.c")
NAME = re.compile(r"^\s*#\s*define\s+ALGORITHM\s+(\w+)\s*$", re.MULTILINE)


def algorithm(path: Path) -> str:
    """The name that a file gives itself. Raises `ValueError` if it is not of this form."""
    found = NAME.search(path.read_text(encoding="utf-8", errors="replace"))
    if found is None:
        raise ValueError(f'{path}: expected a line "#define ALGORITHM NAME", as in the files of kernel/, found none')
    return found[1]


def shared(path: Path) -> Path:
    """The shared object of a file. Raises `ValueError` as `build.shared` does."""
    flags = ["-std=gnu11", "-fvisibility=hidden", f"-DALGORITHM={algorithm(path)}"]
    if re.search(r"\bin_flight\b", path.read_text(encoding="utf-8", errors="replace")):
        flags.append("-DNEEDS_RATE")
    headers = {name: text for name, text in _core.kernel_sources().items() if name.endswith(".h")}
    return build.shared([path, ADAPTER], flags=flags, texts=headers)
