"""What each test may cost. The client prints this before anything else is sent."""

from collections.abc import Sequence
from dataclasses import dataclass

from elephan.base.table import Cell, Head, Table

# The parts of bytes and of time that each test gets. TCP's part is divided by algorithms and directions; without algorithms the
# other tests share it. The rest is kept for the session itself, and for what a test sends beyond its plan.
PARTS: dict[str, tuple[float, float]] = {
    "mtu": (0.02, 0.06),
    "delays": (0.02, 0.12),
    "trains": (0.03, 0.06),
    "curve": (0.15, 0.12),
    "buffer": (0.15, 0.14),
    "loss": (0.15, 0.20),
    "tcp": (0.40, 0.24),
}
MEANING = {
    "mtu": "path MTU: packets that must not be fragmented",
    "delays": "delays by packet size, echoed; reordering, duplication, jitter",
    "trains": "capacity, by the dispersion of packet trains",
    "curve": "throughput, loss and delay against packet spacing; available rate",
    "buffer": "buffer, by an overload",
    "loss": "random loss, at a low load",
    "tcp": "TCP for some seconds",
}


@dataclass(frozen=True)
class Share:
    """What a test may cost: bytes of IP packets in both directions, and seconds."""

    test: str
    bytes: int
    seconds: float


def plan(max_bytes: int, max_seconds: float, algorithms: Sequence[str]) -> dict[str, Share]:
    """The share of each test. TCP has one for each algorithm and direction: `tcp cubic`, `tcp cubic back`."""
    names = [name for cc in algorithms for name in (f"tcp {cc}", f"tcp {cc} back")]
    shares = {}
    free_bytes, free_seconds = (0.0, 0.0) if names else PARTS["tcp"]
    for test, (part, time) in PARTS.items():
        tests = names if test == "tcp" else [test]
        for name in tests:
            size = int(max_bytes * part / (1 - free_bytes) / len(tests))
            shares[name] = Share(name, size, max_seconds * time / (1 - free_seconds) / len(tests))
    return shares


def table(shares: dict[str, Share], max_bytes: int, max_seconds: float) -> Table:
    """The budget for people."""
    head = [Head("test", numeric=False), Head("at most", "MB"), Head("at most", "s"), Head("measures", numeric=False)]
    rows: list[list[Cell]] = [
        [share.test, share.bytes * 1e-6, share.seconds, MEANING[share.test.partition(" ")[0]]]
        for share in shares.values()
    ]
    rows.append(["together", max_bytes * 1e-6, max_seconds, "never more: bytes of IP packets in both directions"])
    return Table("budget", head, rows)
