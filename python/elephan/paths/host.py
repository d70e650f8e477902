"""What is found out of a host: figures, devices, settings, limits; as tables, as host.json, and as `[host]` of a scenario."""

import math
import platform
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from elephan import _core
from elephan.base.table import Cell, Table, text_heads
from elephan.paths.settings import Demand, Interface, Setting, clock_ghz, read_sysctl
from elephan.studies.statistics import Estimate

# Units in which figures are shown, and the factor from those of host.json.
SHOWN = {
    "bit/s": ("Gbit/s", 1e-9),
    "s/byte": ("ns/B", 1e9),
    "s": ("us", 1e6),
    "GHz s/Gbit": ("GHz for 1 Gbit/s", 1.0),
}


@dataclass(frozen=True)
class Figure:
    """A figure of a host: the mean of its repeats with the 95 % interval, in base units, and how it came about."""

    key: str
    title: str
    unit: str
    # One for each repeat.
    samples: Sequence[float]
    method: str

    @property
    def estimate(self) -> Estimate:
        """The mean of the samples, with its interval."""
        return Estimate.of(self.samples)

    @property
    def text(self) -> str:
        """Mean and half-width of the interval with its unit: `12.3 ± 0.4 Gbit/s`."""
        unit, factor = SHOWN[self.unit]
        return f"{self.estimate.scaled(factor).text()} {unit}".rstrip()

    @property
    def document(self) -> dict[str, Any]:
        """The figure as host.json has it."""
        known = self.estimate
        interval = {"mean": known.mean, "low": known.low, "high": known.high, "repeats": known.repeats}
        named = {"key": self.key, "title": self.title, "unit": self.unit}
        return {**named, **interval, "samples": self.samples, "method": self.method}


@dataclass(frozen=True)
class Limit:
    """Something that limits what this host sends, bit/s."""

    what: str
    bit_s: Estimate

    @property
    def text(self) -> str:
        """The rate with its interval."""
        return f"{self.bit_s.scaled(1e-9).text()} Gbit/s"


@dataclass
class Host:
    """All that was found out."""

    figures: list[Figure] = field(default_factory=list)
    devices: list[Interface] = field(default_factory=list)
    settings: list[Setting] = field(default_factory=list)
    limits: list[Limit] = field(default_factory=list)
    # What was left out, with the reason.
    left_out: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def figure(self, key: str) -> Figure | None:
        """The figure of this key, if it was measured."""
        return next((one for one in self.figures if one.key == key), None)

    @property
    def conclusion(self) -> str:
        """What this host can send, and the least of what limits it."""
        least = min(self.limits, key=lambda limit: limit.bit_s.mean or math.inf)
        return f"this host can send {least.text}, limited by {least.what}"


# The tables of figures: their titles, and how the keys of their figures begin.
GROUPS = {
    "TCP within this host": "tcp.",
    "processor time of a sender and a receiver": "host.",
    "latency between namespaces": "latency.",
}


def tables(host: Host) -> list[Table]:
    """The figures, the devices, the settings and the limits."""
    found = []
    for title, keys in GROUPS.items():
        rows: list[list[Cell]] = [[one.title, one.text] for one in host.figures if one.key.startswith(keys)]
        if rows:
            found.append(Table(title, text_heads("what", "found"), rows))
    if host.devices:
        facts = zip(*(one.text.values() for one in host.devices), strict=True)
        rows = [[what, *each] for what, each in zip(host.devices[0].text, facts, strict=True)]
        found.append(Table("network devices", text_heads("", *(one.name for one in host.devices)), rows))
    said = {True: "yes", False: "no", None: ""}
    rows = [[one.name, one.value, one.needed, said[one.suffices]] for one in host.settings]
    found.append(Table("settings", text_heads("setting", "value", "needed", "suffices"), rows))
    rows = [[one.what, one.text] for one in sorted(host.limits, key=lambda one: one.bit_s.mean or 0)]
    found.append(Table("limits of sending", text_heads("by", "rate"), rows))
    return found


def read(document: Mapping[str, Any]) -> Host:
    """What a host.json has, without the limits' repeats."""
    facts = {"name", "mtu", "speed_bit_s", "txqueuelen", "qdisc"}
    return Host(
        [Figure(*(one[key] for key in ("key", "title", "unit", "samples", "method"))) for one in document["figures"]],
        [
            Interface(**{key: one[key] for key in facts}, told={key: one[key] for key in one.keys() - facts})
            for one in document["devices"]
        ],
        [Setting(**one) for one in document["settings"]],
        [
            Limit(one["what"], Estimate(one["bit_s"], None, None, one["low"], one["high"], 1, 1))
            for one in document["limits"]
        ],
        document["left_out"],
        document["notes"],
    )


def advice(host: Host) -> list[str]:
    """What does not suffice: why it is needed, and the command that would change it."""
    found = []
    for one in host.settings:
        if one.suffices is False:
            found.append(f"{one.name}: {one.why}")
            found += [f"    {one.command}"] if one.command else []
    return found


def document(host: Host, cores: int, demand: Demand | None) -> dict[str, Any]:
    """host.json."""
    return {
        "elephan": _core.__version__,
        "kernel": platform.release(),
        "machine": platform.machine(),
        "cores": cores,
        "clock_ghz": clock_ghz(),
        "date": time.strftime("%Y-%m-%d %H:%M:%S%z"),
        "path": None if demand is None else vars(demand),
        "conclusion": host.conclusion,
        "figures": [one.document for one in host.figures],
        "limits": [
            {"what": one.what, "bit_s": one.bit_s.mean, "low": one.bit_s.low, "high": one.bit_s.high}
            for one in host.limits
        ],
        "devices": [
            {"name": one.name, "mtu": one.mtu, "speed_bit_s": one.speed_bit_s, "txqueuelen": one.txqueuelen}
            | {"qdisc": one.qdisc, **one.told}
            for one in host.devices
        ],
        "settings": [vars(one) for one in host.settings],
        "left_out": host.left_out,
        "notes": host.notes,
    }


def snippet(host: Host) -> str:
    """host.toml: the table `[host]` of a scenario with what was measured here; without namespaces, comments alone."""
    lines = [
        "# The costs of sending on this host, measured by `elephan path host`. Kernels of today traverse no SACK lists",
        "",
    ]
    packet = host.figure("host.packet")
    if packet is None:
        return "\n".join([*lines, *(f"# nothing was measured: {one}" for one in host.left_out)]) + "\n"
    # The device of the most packets that may wait: where a driver tells no ring, the kernel's own queue.
    rings = [(one.told["rings"]["receive"], one.name) for one in host.devices if one.told["rings"]]
    backlog = read_sysctl("net.core.netdev_max_backlog") or "1000"
    waiting, of = (
        (str(rings[0][0]), f"the receive ring of {rings[0][1]}") if rings else (backlog, "net.core.netdev_max_backlog")
    )
    lines += [
        "[host]",
        f"# {packet.text}: {packet.method}",
        f'data = "{_ns(packet)}"',
        f'ack = "{_ns(packet)}"',
        f"max_backlog = {waiting}  # {of}",
    ]
    for device in host.devices:
        lines.append(
            f"# txqueuelen = {device.txqueuelen}  # of {device.name}; needs path.access_rate, the device's rate"
        )
    return "\n".join(lines) + "\n"


def _ns(figure: Figure) -> str:
    return f"{(figure.estimate.mean or 0.0) * 1e9:.1f} ns"
