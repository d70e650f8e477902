"""The published algorithms in the running kernel: compile, load, list, unload.

    from elephan import kernel

    kernel.load("scalable", {"a": 0.02})   # setsockopt(TCP_CONGESTION, "el_scalable"), iperf3 -C el_scalable

A loaded algorithm stays until it is unloaded or the machine restarts. Needs root, a kernel with BTF, clang and libbpf.
"""

from elephan.kernel.errors import KernelError
from elephan.kernel.loader import (
    Held,
    Loaded,
    algorithms,
    available,
    hold,
    load,
    loaded,
    missing,
    unload,
)

__all__ = ["Held", "KernelError", "Loaded", "algorithms", "available", "hold", "load", "loaded", "missing", "unload"]
