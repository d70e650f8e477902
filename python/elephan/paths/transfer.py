"""Transfers between two hosts: memory, a file or a stream of bytes over several TCP connections, recorded as a run.

A stream is a flow of that run. Goodput counts what its connection has delivered, with the heads of blocks and of TLS records.
"""

import json
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from platform import release
from typing import Any

from elephan import _core, kernel
from elephan.api.registry import algorithms
from elephan.api.run import Run
from elephan.api.scenario import Scenario, dumbbell, flow
from elephan.engines.sim import from_columns
from elephan.paths.scenario import bytes_text, rate_text, time_text

# A peer that says nothing for so long is gone.
PATIENCE_S = 20.0
STREAMS = 4
# The kernel's congestion control where none is asked for.
DEFAULT = Path("/proc/sys/net/ipv4/tcp_congestion_control")
# The largest IP packet, and the fewest packets of an assumed buffer.
LARGEST = 65_535
FEWEST = 100
# The lowest rate of a scenario, where less was sent and received.
LEAST_BIT_S = 1.0
# The path of standard input, and of standard output.
PIPE = Path("-")

# Called with the bytes of all (none until the transfer is open, and of standard input), the bytes that are stored, the rate in
# bit/s, and what limits it.
Progress = Callable[[int | None, int, float, str | None], object]


@dataclass(frozen=True)
class Sent:
    """A transfer that has come to its end.

    - `run`: the streams, as any run;
    - `bytes`: bytes that arrived in this transfer;
    - `seconds`: from the first data until everything was in place;
    - `there`: whether the file was there, with its size and time of modification, so that nothing was sent;
    - `blake3`: the hash of all data; none of memory, and of a file that was there.
    """

    run: Run
    bytes: int
    seconds: float
    there: bool
    blake3: str | None


def send(
    host: str,
    token: str,
    *,
    path: Path | None = None,
    memory: int | None = None,
    port: int = _core.TRANSFER_PORT,
    streams: int = STREAMS,
    cc: str | None = None,
    load: bool = False,
    plain: bool = False,
    force: bool = False,
    pace_bit_s: float | None = None,
    patience_s: float = PATIENCE_S,
    scenario: Scenario | None = None,
    progress: Progress | None = None,
) -> Sent:
    """Send a file (`PIPE`: standard input), or so many bytes of memory, to a receiver.

    `cc` is the kernel's name of a congestion control; with `load` it is an algorithm of Elephan, which is loaded for this
    transfer. `scenario` describes the path for the recorded run; without it, the run has what its streams have measured.

    Raises `ScenarioError` for what cannot be done as it was asked for, `KernelError` if an algorithm cannot be loaded, and
    `OSError` if the transfer fails. What has arrived of a file stays, and the same call goes on with it.
    """
    if load and cc is None:
        raise _core.ScenarioError("--load: expected a name in --cc, found none")
    started = time.perf_counter()
    with kernel.hold() if load else nullcontext() as held:
        name = cc if held is None or cc is None else held.name_of(cc)
        result = _core.transfer_send(
            host,
            port,
            token,
            path=path,
            memory=memory,
            streams=streams,
            plain=plain,
            force=force,
            cc=name,
            pace=pace_bit_s,
            patience_s=patience_s,
            progress=progress,
        )
    done = json.loads(result["done"])
    wall_s = time.perf_counter() - started
    kernels = cc or DEFAULT.read_text(encoding="ascii").strip()
    flows = [flow(kernels if load else named(kernels), label=label) for label in result["labels"]]
    return Sent(
        run=recorded(result, flows, scenario, wall_s),
        bytes=done["bytes"],
        seconds=result["duration_s"],
        there=done["there"],
        blake3=done["hash"],
    )


def named(name: str) -> str:
    """The name in a scenario of an algorithm of the kernel.

    It is that of the algorithm itself: a module of Linux (`linux:cubic`) would need its source wherever results are read.
    """
    ours = {one.registered: one.name for one in kernel.algorithms().values()}
    # One that nobody here knows is recorded as Standard TCP; the windows in the samples are its own.
    return ours.get(name, name if name in {entry.name for entry in algorithms()} else "reno")


def described(
    result: Mapping[str, Any], flows: Sequence[Mapping[str, Any]], path: Scenario | None, name: str
) -> Scenario:
    """The scenario of a transfer: its flows on the given path, or on one of which nothing is known but what they saw.

    Its rate is then the highest at which they delivered, a lower bound, and its round-trip time their shortest.
    """
    duration = f"{result['duration_s']:.9f} s"
    # A window holds at least an interval, and a short transfer is over before its second sample.
    interval = time_text(min(result["interval_s"], result["duration_s"]))
    keys: dict[str, Any] = {"measure": {"from": "0 s", "interval": interval}, "trace": {"interval": interval}}
    if path is not None:
        document = {**path.document, "name": name, "duration": duration, "flow": flows, "sweep": None, **keys}
        text = json.dumps({key: value for key, value in document.items() if value is not None})
        return Scenario(_core.load_scenario(text, "path", [], json=True, large=True))
    packet, rate_bit_s = min(result["packet_bytes"], LARGEST), max(result["fastest_bit_s"], LEAST_BIT_S)
    return dumbbell(
        name=name,
        rate=rate_text(rate_bit_s),
        rtt=time_text(result["min_rtt_s"]),
        # Nothing is known of it: one bandwidth-delay product, where that is more than some packets.
        buffer=f"{max(round(rate_bit_s * result['min_rtt_s'] / 8 / packet), FEWEST)} packets",
        flows=flows,
        duration=duration,
        tcp={"profile": "linux-6", "packet": bytes_text(packet)},
        large=True,
        **keys,
    )


def recorded(
    result: Mapping[str, Any],
    flows: Sequence[Mapping[str, Any]],
    path: Scenario | None,
    wall_s: float,
    name: str = "transfer",
) -> Run:
    """Make a run from the tables of the connections that these flows are."""
    return from_columns(described(result, flows, path, name), dict(result), wall_s, "transfer", release())


def receive(
    folder: Path | None,
    started: Callable[[int, str], object],
    tell: Callable[[list[dict[str, Any]]], object],
    *,
    address: str = "0.0.0.0",
    port: int = _core.TRANSFER_PORT,
    once: bool = False,
    patience_s: float = PATIENCE_S,
) -> None:
    """Receive files into a folder, or memory alone without one, until interrupted; with `once`, until a transfer is complete.

    Into `PIPE`, standard output, it receives what the sender reads from its standard input, and nothing afterwards. Calls
    `started` with the port and the token, and `tell` twenty times a second, with what has happened. Raises `ScenarioError` for
    an unusable address or folder, and `OSError` where standard output did not get all.
    """
    at = f"[{address}]:{port}" if ":" in address else f"{address}:{port}"

    def told(events: list[str]) -> None:
        tell([json.loads(event) for event in events])

    _core.transfer_receive(at, folder, started, told, once=once, patience_s=patience_s)
