"""The settings of a host that matter for long fat paths: value, what a path needs, why, and the command that would change it.

Nothing here changes any.
"""

import json
import math
import shutil
import socket
import subprocess
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from elephan.base.numbers import significant

# A packet of Ethernet without jumbo frames, bytes.
PACKET = 1500
# Windows without scaling are at most this, bytes (RFC 9293).
UNSCALED = 65_535
# A buffer counts the kernel's own memory of packets: about half of it is data (`tcp_adv_win_scale`, ip-sysctl).
OF_BUFFER = 2
# The kernel receives for so long before it lets others work (`netdev_budget_usecs`), us, where this cannot be read.
BUDGET_US = 8000

Read = Callable[[str], str | None]


@dataclass(frozen=True)
class Demand:
    """What the settings are to serve: a rate, bit/s, and a round-trip time, s."""

    rate_bit_s: float
    rtt_s: float

    @property
    def bdp_bytes(self) -> float:
        """The bandwidth-delay product."""
        return self.rate_bit_s * self.rtt_s / 8


@dataclass(frozen=True)
class Setting:
    """A setting: what it is, what is needed (empty: nothing to say), whether it suffices, why, and the command to change it."""

    name: str
    value: str
    needed: str = ""
    suffices: bool | None = None
    why: str = ""
    command: str = ""


def read_sysctl(key: str) -> str | None:
    """A sysctl of this kernel, its words separated by single spaces; none if there is no such."""
    try:
        return " ".join(Path("/proc/sys", key.replace(".", "/", 2)).read_text(encoding="ascii").split())
    except OSError:
        return None


def clock_ghz() -> float | None:
    """The processor's clock as the kernel tells it, the mean of all cores."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return None
    found = [float(line.partition(":")[2]) / 1e3 for line in lines if line.startswith("cpu MHz")]
    return sum(found) / len(found) if found else None


# Settings with values that suit long paths, whatever their rate: those values, the first of which is advised, and why.
SWITCHES: dict[str, tuple[tuple[str, ...], str]] = {
    "net.ipv4.tcp_window_scaling": (("1",), "windows above 64 kB (RFC 7323)"),
    "net.ipv4.tcp_timestamps": (("1",), "protects against wrapped sequence numbers, and samples each RTT (RFC 7323)"),
    "net.ipv4.tcp_sack": (("1",), "repairs several losses in a round trip (RFC 2018)"),
    "net.ipv4.tcp_moderate_rcvbuf": (("1",), "lets the receiver's buffer grow to tcp_rmem (ip-sysctl)"),
    # Probing is on for 1 (after a black hole) and 2 (always).
    "net.ipv4.tcp_mtu_probing": (("1", "2"), "finds the MTU where ICMP is filtered (RFC 4821)"),
    "net.ipv4.tcp_slow_start_after_idle": (
        ("0",),
        "a pause does not cost a new slow start of many long round trips (ip-sysctl)",
    ),
    "net.ipv4.tcp_no_metrics_save": (("1",), "a loss does not limit the slow start of later connections (ip-sysctl)"),
    "net.core.default_qdisc": (("fq",), "paces each flow, as BBR and large windows need (tc-fq(8))"),
}
MOST = "the most that a program can ask for itself (SO_RCVBUF, SO_SNDBUF); others get tcp_*mem"
BACKLOG = (
    "packets that arrive while the kernel works through others (netdev_budget_usecs); used without NAPI, and with RPS "
    "(Li 2006, 5.2.2: max_backlog)"
)


def _judged(name: str, value: str, needed: str, suffices: bool, why: str, command: str) -> Setting:
    return Setting(name, value, needed, suffices, why, "" if suffices else command)


def _packets_in_budget(read: Read, path: Demand) -> int:
    budget_us = float(read("net.core.netdev_budget_usecs") or BUDGET_US)
    return math.ceil(path.rate_bit_s / 8 / PACKET * budget_us * 1e-6)


def kernel_settings(path: Demand | None, read: Read = read_sysctl) -> list[Setting]:
    """The kernel's settings. What depends on rate and round-trip time is judged for a path only, otherwise shown."""
    found = []
    for name, (fits, why) in SWITCHES.items():
        value, is_short = read(name), path is not None and path.bdp_bytes <= UNSCALED
        if value is not None and not (is_short and name.endswith("window_scaling")):
            found.append(_judged(name, value, fits[0], value in fits, why, f"sysctl -w {name}={fits[0]}"))
    name, available = "net.ipv4.tcp_congestion_control", read("net.ipv4.tcp_available_congestion_control")
    if (value := read(name)) is not None:
        found.append(
            Setting(name, value, why=f"there are {available}; which one suits a path: `elephan path recommend`")
        )
    buffers = {"net.ipv4.tcp_rmem": "receiver", "net.ipv4.tcp_wmem": "sender"}
    others = ["net.core.rmem_max", "net.core.wmem_max", "net.core.netdev_max_backlog"]
    if path is None:
        return [*found, *(Setting(one, value) for one in (*buffers, *others) if (value := read(one)) is not None)]
    needed = math.ceil(OF_BUFFER * path.bdp_bytes)
    for name, whose in buffers.items():
        words = (read(name) or "").split()
        if len(words) != 3:
            continue
        why = f"the {whose}'s window is about half of the third value, and has to hold rate x RTT (RFC 7323; ip-sysctl)"
        command = f"sysctl -w {name}='{words[0]} {words[1]} {needed}'"
        found.append(_judged(name, " ".join(words), f"... {needed}", int(words[2]) >= needed, why, command))
    counts = ((needed, MOST), (needed, MOST), (_packets_in_budget(read, path), BACKLOG))
    for name, (count, why) in zip(others, counts, strict=True):
        if (value := read(name)) is not None:
            found.append(_judged(name, value, str(count), int(value) >= count, why, f"sysctl -w {name}={count}"))
    return found


@dataclass(frozen=True)
class Interface:
    """A network device of this host, and what its driver tells."""

    name: str
    mtu: int
    # bit/s; none if the driver does not tell it.
    speed_bit_s: float | None
    txqueuelen: int
    qdisc: str | None
    told: Mapping[str, Any]

    @property
    def text(self) -> dict[str, str]:
        """The facts as text, by what they are; what the driver does not tell is `not told`."""
        rings, waits = self.told["rings"], self.told["coalesce"]
        offloads = [name for name, on in self.told["offloads"] if on]
        return {
            "driver": self.told["driver"] or "not told",
            "speed": "not told" if self.speed_bit_s is None else f"{significant(self.speed_bit_s * 1e-9)} Gbit/s",
            "MTU": str(self.mtu),
            "qdisc": self.qdisc or "not told",
            "txqueuelen": str(self.txqueuelen),
            "rings (rx, tx)": "not told"
            if rings is None
            else f"{rings['receive']} of {rings['receive_most']}, {rings['send']} of {rings['send_most']}",
            "coalescing (rx)": "not told"
            if waits is None
            else f"{waits['receive_us']} us, {waits['receive_packets']} packets"
            + (", adaptive" if waits["adaptive_receive"] else ""),
            "offloads": " ".join(offloads),
        }


def qdiscs() -> dict[str, str]:
    """The queue discipline of each device, by ip(8); none without it."""
    ip = shutil.which("ip")
    if ip is None:
        return {}
    done = subprocess.run([ip, "-j", "link", "show"], capture_output=True, text=True, check=False)
    try:
        return {one["ifname"]: one["qdisc"] for one in json.loads(done.stdout or "[]") if "qdisc" in one}
    except (ValueError, KeyError, TypeError):
        return {}


def interfaces(measure: Callable[[Mapping[str, Any]], Any]) -> list[Interface]:
    """The devices of this host that are up, apart from loopback.

    In a network namespace `/sys` may still show the devices of another one: only those count that both know by one number.
    """
    found, disciplines = [], qdiscs()
    for index, name in sorted(socket.if_nameindex(), key=lambda one: one[1]):
        folder = Path("/sys/class/net") / name
        if name == "lo" or _number(folder / "ifindex") != index or _number(folder / "carrier") != 1:
            continue
        told = measure({"what": "device", "name": folder.name})
        speed = _number(folder / "speed")
        found.append(
            Interface(
                folder.name,
                int(_number(folder / "mtu") or 0),
                speed * 1e6 if speed is not None and speed > 0 else None,
                int(_number(folder / "tx_queue_len") or 0),
                disciplines.get(folder.name),
                told,
            )
        )
    return found


def _number(path: Path) -> float | None:
    try:
        return float(path.read_text(encoding="ascii"))
    except (OSError, ValueError):
        # A device that is down has no carrier, a virtual one no speed.
        return None


def device_settings(device: Interface, path: Demand | None, read: Read = read_sysctl) -> list[Setting]:
    """The settings of a device, judged for a path if there is one."""
    name = device.name
    needed = "1000"
    found = [
        _judged(
            f"{name}: txqueuelen",
            str(device.txqueuelen),
            needed,
            device.txqueuelen >= int(needed),
            "packets that wait for the device; a full queue reduces the window (Li 2006, 5.2.2)",
            f"ip link set dev {name} txqueuelen {needed}",
        )
    ]
    rings = device.told["rings"]
    if path is not None and rings is not None:
        most = int(rings["receive_most"])
        packets = min(most, _packets_in_budget(read, path))
        why = "packets that arrive while the kernel works through others (netdev_budget_usecs), or as many as the device has"
        found.append(
            _judged(
                f"{name}: receive ring",
                str(rings["receive"]),
                str(packets),
                rings["receive"] >= packets,
                why,
                f"ethtool -G {name} rx {packets}",
            )
        )
    if path is not None and device.speed_bit_s is not None:
        suffices = device.speed_bit_s >= path.rate_bit_s
        speed = f"{significant(device.speed_bit_s * 1e-9)} Gbit/s"
        needed = f"{significant(path.rate_bit_s * 1e-9)} Gbit/s"
        found.append(Setting(f"{name}: speed", speed, needed, suffices, "the path's rate"))
    return found
