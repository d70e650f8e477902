"""A path as its user gives it: a scenario file, with the intervals of `path.json` beside it, or a few values."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from elephan import _core
from elephan.api.scenario import Scenario, load
from elephan.base.kinds import PATH
from elephan.paths import estimates
from elephan.paths.estimates import DEFAULT_PACKET_BYTES, SENDER, Estimates, Host, Value
from elephan.paths.scenario import packet_of, rate_text, time_text


def of_values(rate_bit_s: float, rtt_s: float, buffer: str, loss: float = 0.0) -> Estimates:
    """A path of these values, which count as exact. `buffer` is as in a scenario. Raises `ScenarioError`."""
    amount = _core.quantity(buffer)
    if amount is None or amount[1] not in ("bdp", "packets", "bytes") or not amount[0] > 0:
        raise _core.ScenarioError(f'buffer: expected "20% bdp", "500 packets" or "750 kB", found "{buffer}"')

    def exact(unit: str, value: float) -> Value:
        return Value(unit=unit, value=value, method="given")

    product = rate_bit_s * rtt_s / 8
    held = max(_buffer(buffer, product, DEFAULT_PACKET_BYTES), DEFAULT_PACKET_BYTES)
    source = f"{rate_text(rate_bit_s)}, {time_text(rtt_s)}, buffer {buffer}" + (f", loss {loss:g}" if loss else "")
    return Estimates(
        made_by="hand", source=source, rate_bit_s=exact("bit/s", rate_bit_s), base_rtt_s=exact("s", rtt_s),
        buffer_bytes=exact("B", held), loss=exact("1", loss),
    )  # fmt: skip


def read_path(file: Path) -> tuple[Estimates, Scenario]:
    """The path of a scenario file, with the intervals of `path.json` beside it where that has the same values.

    The costs of the sender's host are those of the file's `[host]`, which `elephan path host` writes. Raises `ScenarioError` if
    the file has no `[path]`.
    """
    made = load(file)
    path = made.document.get("path")
    if path is None:
        raise _core.ScenarioError(f"{file}: expected a scenario with [path], found none")
    if (file.parent / PATH.document).is_file():
        found = estimates.read(file.parent)
    else:
        unknown = Value(unit="", absent="no path.json")
        notes = ["there is no path.json beside it: its values are taken for exact"]
        found = Estimates(made_by="hand", source=file.name, rate_bit_s=unknown, base_rtt_s=unknown, notes=notes)
    rate, rtt = _core.bits_per_second(path["rate"]), _core.seconds(path["rtt"])
    packet, _ = packet_of(made.document)
    loss = path.get("loss") or {}
    chance = loss.get("probability", 0.0) if loss.get("name") == "random" else None
    product = rate * rtt / 8
    told = {
        **_rates(path, rate),
        "base_rtt_s": (rtt, "s"),
        "buffer_bytes": (_buffer(str(path["buffer"]), product, packet), "B"),
        **({"loss": (chance, "1")} if chance is not None else {}),
        "mtu_bytes": (packet, "B"),
    }
    if "links_bit_s" not in told:
        found = msgspec.structs.replace(found, burst_bytes=None, links_bit_s=None)
    buffer = found.buffer_bytes
    if (
        buffer is not None
        and buffer.value is None
        and abs(told["buffer_bytes"][0] - max(buffer.low or 0, product)) < packet
    ):
        # What is written for a buffer that was never filled.
        del told["buffer_bytes"]
    changed = [key for key, (value, _) in told.items() if not _is_same(getattr(found, key), value)]
    edited = [key for key in changed if getattr(found, key) is not None and found.made_by != "hand"]
    if edited:
        found = msgspec.structs.replace(
            found,
            notes=[
                *found.notes,
                f"{file.name} has other values than path.json, which count as exact: {', '.join(edited)}",
            ],
        )
    exact = {key: Value(unit=told[key][1], value=told[key][0], method=f"from {file.name}") for key in changed}
    return with_costs(msgspec.structs.replace(found, **exact), made.document.get("host", {})), made


def _rates(path: Mapping[str, Any], links_bit_s: float) -> dict[str, tuple[float, str]]:
    """The rate of the path, and its policer and links if it has one policer that drops packets of all classes."""
    police = path.get("police", [])
    if len(police) != 1 or "dscp" in police[0] or police[0].get("exceed", "drop") != "drop":
        return {"rate_bit_s": (links_bit_s, "bit/s")}
    rate, burst = _core.bits_per_second(police[0]["rate"]), _buffer(police[0]["burst"], 0.0, 0.0)
    return {"rate_bit_s": (rate, "bit/s"), "burst_bytes": (burst, "B"), "links_bit_s": (links_bit_s, "bit/s")}


def with_costs(found: Estimates, costs: Mapping[str, Any]) -> Estimates:
    """The estimates with these costs of the sender's host (keys of `[host]`), and no others."""
    sender = next((host for host in found.hosts if host.role == SENDER), Host(role=SENDER))
    hosts = [host for host in found.hosts if host is not sender]
    known = msgspec.structs.replace(sender, costs=dict(costs))
    return msgspec.structs.replace(found, hosts=hosts if known == Host(role=SENDER) else [known, *hosts])


def _is_same(value: Value | None, told: float) -> bool:
    """Whether the file has this value: it rounds to whole bytes, and to four digits of a loss."""
    best = value.best if value is not None and not (value.unit == "1" and value.value is None) else None
    return best is not None and abs(best - told) <= max(1e-4 * told, 1e-12 if told < 1 else 0.6)


def _buffer(text: str, product: float, packet: float) -> float:
    amount = _core.quantity(text)
    assert amount is not None
    value, unit = amount
    return {"bdp": value * product, "packets": value * packet}.get(unit, value)
