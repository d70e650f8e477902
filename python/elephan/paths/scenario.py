"""The scenario of a measured path: `path.toml`, which any command runs, with the interval of each value in its comments."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from elephan._core import ScenarioError, quantity
from elephan.api.scenario import Scenario, flow, load
from elephan.base.text import toml, toml_key, visible
from elephan.paths.estimates import SENDER, Estimates, Value
from elephan.paths.observed import HEADERS

FILE = "path.toml"
# A buffer that nothing is known of: the rule of thumb of one bandwidth-delay product (Villamizar and Song 1994).
ASSUMED_BUFFER = "100% bdp"
DURATION = "60 s"
# Cross traffic of less than a packet of 1500 bytes in a minute does not count.
LEAST_CROSS_BIT_S = 8 * 1500 / 60

Table = dict[str, Any]


def rate_text(bit_s: float) -> str:
    """A rate as a scenario has it, without an exponent."""
    return f"{bit_s / 1e6:.9g} Mbit/s" if bit_s >= 1e3 else f"{bit_s:.9g} bit/s"


def time_text(seconds: float) -> str:
    """A time as a scenario has it, without an exponent, in whole nanoseconds at the least."""
    return f"{seconds * 1e3:.9g} ms" if seconds >= 1e-6 else f"{seconds * 1e9:.0f} ns"


def bytes_text(count: float) -> str:
    """A number of bytes as a scenario has it."""
    return f"{round(count)} B"


def packet_of(document: Mapping[str, Any]) -> tuple[float, float]:
    """A full packet of a scenario, and its headers of IPv4 and TCP, in bytes."""
    tcp = document.get("tcp", {})
    size = quantity(str(tcp.get("packet", "1500 B")))
    return 1500.0 if size is None else size[0], HEADERS + 12.0 * bool(tcp.get("timestamps", True))


def _known(value: Value, key: str) -> float:
    if value.best is None:
        raise ScenarioError(f"{key}: expected a value or a bound for a scenario, found none: {value.absent}")
    return value.best


def of_path(found: Estimates) -> Table:
    """The table `[path]` of the estimates. A rate or a delay of which only a bound is known is taken at that bound.

    A buffer of which only a lower bound is known is taken at that, or at one bandwidth-delay product if that is more: a
    smaller one would lose packets that the measurement did not see lost. It has room for at least one packet. A path with a
    policer has its token bucket before a link of the links' rate.

    Raises `ScenarioError` if nothing is known of the rate or the round-trip time.
    """
    rate, rtt = _known(found.rate_bit_s, "rate_bit_s"), _known(found.base_rtt_s, "base_rtt_s")
    links = rate
    table: Table = {}
    if found.policer is not None:
        links, burst = found.policer
        # A packet that is larger than the bucket would never pass.
        burst = max(burst, found.packet_bytes)
        table["police"] = [{"rate": rate_text(rate), "burst": bytes_text(burst)}]
    table = {"rate": rate_text(links), "rtt": time_text(rtt), "buffer": ASSUMED_BUFFER, **table}
    product = links * rtt / 8
    buffer = found.buffer_bytes
    if buffer is not None and buffer.best is not None and (buffer.value is not None or buffer.best > product):
        table["buffer"] = bytes_text(max(buffer.best, found.packet_bytes))
    elif product < found.packet_bytes:
        table["buffer"] = bytes_text(found.packet_bytes)
    # A bound of a loss or of a jitter is no reason to simulate one.
    if found.loss is not None and found.loss.value:
        table["loss"] = {"name": "random", "probability": float(f"{found.loss.value:.4g}")}
    if found.jitter_s is not None and found.jitter_s.value:
        table["vary"] = {"name": "jitter", "max": time_text(found.jitter_s.value)}
    return table


def document(
    found: Estimates,
    *,
    flows: Sequence[Mapping[str, Any]] = (),
    duration: str = DURATION,
    tcp: Mapping[str, Any] | None = None,
) -> Table:
    """The scenario of the estimates, as its file has it.

    Without `flows` it has one of CUBIC, and without `tcp` the stack of a current Linux.
    """
    made: Table = {"name": "path", "duration": duration, "path": of_path(found)}
    made["tcp"] = {"profile": "linux-6"} if tcp is None else dict(tcp)
    if found.mtu_bytes is not None and found.mtu_bytes.value is not None:
        made["tcp"]["packet"] = bytes_text(found.mtu_bytes.value)
    costs = next((host.costs for host in found.hosts if host.role == SENDER), {})
    if costs:
        made["host"] = dict(costs)
    made["flow"] = [dict(one) for one in flows] or [flow("cubic")]
    cross_bit_s = 0.0 if found.cross_bit_s is None else found.cross_bit_s.value or 0.0
    if cross_bit_s >= LEAST_CROSS_BIT_S:
        made["cbr"] = [{"rate": rate_text(cross_bit_s), "label": "others"}]
    return made


def write(folder: Path, found: Estimates, **keys: Any) -> Scenario:
    """Write `path.toml` and `path.json` into a folder, and return the scenario. `keys` are those of `document`."""
    made = document(found, **keys)
    path = folder / FILE
    path.write_text(_text(made, found), encoding="utf-8")
    found.write(folder)
    return load(path)


def _text(made: Table, found: Estimates) -> str:
    """The file. Each value of the path is preceded by what was found, with its interval and how it was estimated."""
    values = found.values()
    comments = {
        ("path", "rate"): ["rate_bit_s" if found.policer is None else "links_bit_s"],
        ("path", "rtt"): ["base_rtt_s"],
        ("path", "buffer"): ["buffer_bytes"],
        ("path", "police"): ["rate_bit_s", "burst_bytes"],
        ("path", "loss"): ["loss"],
        ("path", "vary"): ["jitter_s"],
        ("tcp", "packet"): ["mtu_bytes"],
        ("cbr", "rate"): ["cross_bit_s"],
    }
    written = {key for (table, entry), keys in comments.items() if entry in _first(made.get(table, {})) for key in keys}
    lines = [
        _comment(f"The path of {found.source}, by elephan {found.made_by}. Values in brackets are 95 % intervals; "),
        _comment("path.json has the same for programs."),
        *(_comment(f"Note: {note}") for note in found.notes),
        *(_comment(f"{key}: {_said(value)}") for key, value in values.items() if key not in written),
        *(_comment(f"goodput of {cc}: {_said(value)}") for cc, value in found.goodput_bit_s.items()),
    ]
    tables = {key: entry for key, entry in made.items() if isinstance(entry, dict | list)}
    lines += [f"{key} = {toml(entry)}" for key, entry in made.items() if key not in tables]
    for table, content in tables.items():
        for entries in content if isinstance(content, list) else [content]:
            lines += ["", f"[[{table}]]" if isinstance(content, list) else f"[{table}]"]
            for key, entry in entries.items():
                for told in comments.get((table, key), []):
                    known = values.get(told)
                    said = [] if known is None else [_said(known)]
                    if known is None or (
                        key == "buffer" and known.value is None and entry != bytes_text(known.best or 0.0)
                    ):
                        said.append("not measured: assumed")
                    lines.append(_comment("; ".join(said)))
                lines.append(f"{toml_key(key)} = {toml(entry)}")
    return "\n".join(lines) + "\n"


def _first(table: Any) -> Mapping[str, Any]:
    return (table[0] if table else {}) if isinstance(table, list) else table


def _said(value: Value) -> str:
    method = f"; {value.method}" if value.method else ""
    cost = f"; cost {value.cost_bytes} B" if value.cost_bytes else ""
    return f"{value.text}{method}{cost}"


def _comment(text: str) -> str:
    return f"# {visible(text.strip())}"
