"""Estimates of a path: what `path.json` has beside the scenario `path.toml`, each value with its 95 % interval.

A measurement that could not tell a value says why (`absent`). If it could tell a bound, `low` or `high` is that bound and there
is no `value`: a flow that never filled a buffer shows that the buffer is at least so large.
"""

import math
from pathlib import Path
from typing import Any

import msgspec

from elephan._core import ScenarioError
from elephan.base.documents import inside
from elephan.base.kinds import PATH
from elephan.base.numbers import significant

# What a file of this form is known by, and its version.
FORM, VERSION = "elephan path", 1
# The role of the host whose costs a scenario of the path has.
SENDER = "sender"


class Value(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """An estimate with its 95 % interval.

    `value` is `None` if the measurement gave none; then `absent` is the reason, and `low` or `high` a bound if it told one.
    `method` says in a line how it was estimated, and `cost_bytes` how many bytes were sent for it.
    """

    unit: str
    value: float | None = None
    low: float | None = None
    high: float | None = None
    method: str = ""
    absent: str = ""
    cost_bytes: int = 0

    def __post_init__(self) -> None:
        """Refuse what no measurement gives: infinite and negative numbers, and an interval without its value."""
        numbers = [one for one in (self.low, self.value, self.high) if one is not None]
        if any(not math.isfinite(one) or one < 0 for one in numbers):
            raise ValueError(f"expected finite numbers from 0 on, found {numbers}")
        if numbers != sorted(numbers):
            raise ValueError(f"expected low <= value <= high, found {numbers}")
        if self.value is None and not self.absent:
            raise ValueError("expected a value, or `absent` with the reason; found neither")

    @property
    def best(self) -> float | None:
        """The value; the bound if only a bound is known; none if nothing is."""
        return next((one for one in (self.value, self.low, self.high) if one is not None), None)

    @property
    def shown_in(self) -> tuple[str, float]:
        """The unit in which people read it, and the factor: the MTU is 1500 B, a buffer 125 kB."""
        if self.unit == "B" and (self.best or 0.0) < FEW_BYTES:
            return self.unit, 1.0
        return SHOWN.get(self.unit, (self.unit, 1.0))

    @property
    def text(self) -> str:
        """Value, interval and unit on one line, or the bound and the reason for the absence."""
        unit, factor = self.shown_in

        def shown(number: float) -> str:
            return f"{significant(number * factor)} {unit}".rstrip()

        if self.value is None:
            bounds = [
                f"{word} {shown(bound)}"
                for word, bound in (("at least", self.low), ("at most", self.high))
                if bound is not None
            ]
            return ": ".join([" and ".join(bounds) or "unknown", self.absent])
        if self.low is None or self.high is None:
            return shown(self.value)
        return f"{shown(self.value)} ({shown(self.low)} to {shown(self.high)})"


# The units in which people read a value of `path.json`, and the factor.
FEW_BYTES = 10_000
SHOWN = {"bit/s": ("Mbit/s", 1e-6), "s": ("ms", 1e3), "B": ("kB", 1e-3), "1": ("", 1.0)}
# `tcp.packet` of a scenario that does not give it.
DEFAULT_PACKET_BYTES = 1500.0


def absent(unit: str, reason: str, *, low: float | None = None, high: float | None = None) -> Value:
    """A value that the measurement did not tell, and a bound if it told one."""
    return Value(unit=unit, absent=reason, low=low, high=high)


class Host(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What is known of a host at an end of the path.

    `costs` are keys of `[host]` of a scenario, such as `{"data": "3.6 us"}`; `facts` is what else a reader may want to know.
    """

    role: str
    name: str = ""
    costs: dict[str, str | int | float | bool] = {}
    facts: dict[str, str | float | int | bool | None] = {}


class Estimates(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What is known of a path in the direction of the data. A field that is `None` was not measured at all.

    - `rate_bit_s`: rate of the bottleneck, counting IP packets; of a policer, the rate of its token bucket;
    - `base_rtt_s`: round-trip time without queueing and serialisation; `forward_s`, `backward_s`: its one-way parts;
    - `burst_bytes`, `links_bit_s`: of a path with a policer, what its full bucket lets pass beyond that rate, and the rate of
      the links;
    - `buffer_bytes`: what the bottleneck's queue holds, without the packet in service;
    - `loss`: share of packets lost for other reasons than a full queue;
    - `jitter_s`: 99th percentile of a packet's additional delay without load of our own;
    - `reordered`, `duplicated`: shares of packets;
    - `mtu_bytes`: largest IP packet;
    - `cross_bit_s`: what others send through the bottleneck;
    - `goodput_bit_s`: goodput of TCP tests, by algorithm;
    - `hosts`: the sender and the receiver.
    """

    made_by: str
    source: str
    rate_bit_s: Value
    base_rtt_s: Value
    burst_bytes: Value | None = None
    links_bit_s: Value | None = None
    buffer_bytes: Value | None = None
    loss: Value | None = None
    jitter_s: Value | None = None
    reordered: Value | None = None
    duplicated: Value | None = None
    mtu_bytes: Value | None = None
    cross_bit_s: Value | None = None
    forward_s: Value | None = None
    backward_s: Value | None = None
    goodput_bit_s: dict[str, Value] = {}
    hosts: list[Host] = []
    notes: list[str] = []
    form: str = FORM
    version: int = VERSION

    @property
    def policer(self) -> tuple[float, float] | None:
        """Rate of the links in bit/s, and the policer's burst in bytes; none without a policer, or if either is not known."""
        links, burst = (None if one is None else one.best for one in (self.links_bit_s, self.burst_bytes))
        return (links, burst) if links and burst else None

    @property
    def packet_bytes(self) -> float:
        """The largest IP packet, or what a scenario has without `tcp.packet`."""
        return (self.mtu_bytes.best if self.mtu_bytes is not None else None) or DEFAULT_PACKET_BYTES

    def values(self) -> dict[str, Value]:
        """The values that the file has, by key."""
        found = {key: getattr(self, key) for key in self.__struct_fields__}
        return {key: value for key, value in found.items() if isinstance(value, Value)}

    def to_dict(self) -> dict[str, Any]:
        """The estimates as `path.json` has them."""
        plain: dict[str, Any] = msgspec.to_builtins(self)
        return {"form": FORM, "version": VERSION, **plain}

    def write(self, folder: Path) -> Path:
        """Write `path.json` into a folder."""
        path = folder / PATH.document
        path.write_bytes(msgspec.json.format(msgspec.json.encode(self.to_dict()), indent=2) + b"\n")
        return path


def read(folder: Path) -> Estimates:
    """Read `path.json` of a folder. Raises `ScenarioError` if it has another form, and `OSError`."""
    path = inside(folder, PATH.document)
    try:
        found = msgspec.json.decode(path.read_bytes(), type=Estimates)
    except (msgspec.DecodeError, RecursionError) as error:
        raise ScenarioError(f"{path}: expected estimates as `elephan path fit` writes them, found: {error}") from error
    if (found.form, found.version) != (FORM, VERSION):
        raise ScenarioError(f"{path}: expected form {FORM!r} {VERSION}, found {found.form!r:.40} {found.version}")
    return found
