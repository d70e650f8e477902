"""`elephan path probe`: measures the path between two hosts."""

import shlex
import socket
from pathlib import Path
from typing import Annotated

import typer

from elephan import _core
from elephan.base.folders import new_folder
from elephan.base.table import Cell, Head, Table, text_heads
from elephan.cli.options import Force, bytes_of, command_line, given_as, rate_of, words
from elephan.cli.output import Form, err, out, show
from elephan.paths.probe import budget
from elephan.paths.probe.folder import write
from elephan.paths.probe.measure import Found, measure
from elephan.paths.probe.session import Session

app = command_line(group=True, help="Measure the path between two hosts, and write a scenario of it.")
TOKEN = "ELEPHAN_TOKEN"

Rate = Annotated[str | None, typer.Option(help='Rate of any sender, such as "1 Gbit/s".', show_default="no limit")]


@app.command("server")
def server(
    bind: Annotated[str | None, typer.Option(help="IP address to listen at.", show_default="all")] = None,
    port: Annotated[int, typer.Option(min=0, max=65_535, help="Port, of TCP and UDP.")] = _core.PROBE_PORT,
    max_bytes: Annotated[str, typer.Option(help="What a session may cost, both directions together.")] = "10GB",
    max_seconds: Annotated[float, typer.Option(min=1, max=86_400, help="How long a session may last.")] = 600,
    max_rate: Rate = None,
    clients: Annotated[int, typer.Option(min=1, max=1000, help="Clients at a time.")] = 1,
) -> None:
    """Wait for clients at the far end of a path. Prints the token that they need."""
    rate = None if max_rate is None else int(rate_of(max_rate, "--max-rate"))
    made = _core.ProbeServer(bind, port, bytes_of(max_bytes, "--max-bytes"), max_seconds, rate, clients)
    host = bind or socket.gethostname()
    if made.port() != _core.PROBE_PORT:
        host = f"[{host}]:{made.port()}" if ":" in host else f"{host}:{made.port()}"
    out.print(f"port {made.port()}, token {made.token()}", highlight=False, soft_wrap=True)
    command = f"elephan path probe client {shlex.quote(host)} --out path/ --token {made.token()}"
    out.print(command, highlight=False, soft_wrap=True)
    made.run(lambda line: out.print(line, highlight=False, soft_wrap=True))


@app.command("client")
def client(
    host: Annotated[str, typer.Argument(help="Host where `elephan path probe server` runs, as HOST or HOST:PORT.")],
    out_dir: Annotated[Path, typer.Option("--out", help="Folder for path.toml and all else.")] = Path("path"),
    token: Annotated[str | None, typer.Option(envvar=TOKEN, help="The token that the server printed.")] = None,
    max_bytes: Annotated[str, typer.Option(help="Bytes of IP packets, both directions together.")] = "500MB",
    max_seconds: Annotated[float, typer.Option(min=5, max=86_400, help="Seconds, never more.")] = 60,
    cc: Annotated[
        str, typer.Option("--cc", help="TCP's algorithms, by the kernel's names; empty for none.")
    ] = "cubic,reno",
    form: Form = "table",
    force: Force = False,
) -> None:
    """Measure the path to a host, and write path.toml, a scenario of it, with the interval of each value."""
    if token is None:
        raise _core.ScenarioError(
            f"--token: expected the token that the server printed, here or in {TOKEN}, found none"
        )
    address, port = resolved(host)
    algorithms = words(cc)
    with given_as({"token": "--token"}), new_folder(out_dir, force=force) as place:
        session = Session.open(address, port, token, bytes_of(max_bytes, "--max-bytes"), max_seconds)
        shares = budget.plan(session.max_bytes, session.max_seconds, algorithms)
        if form == "table":
            out.show(budget.table(shares, session.max_bytes, session.max_seconds))
        found = measure(session, shares, algorithms, host, err.message)
        spent = session.spent
        write(place, session, found, shares, spent)
    show([table(found)], form, found.estimates.to_dict())
    if form != "table":
        return
    for note in found.estimates.notes:
        out.message(f"note: {note}")
    out.message(f"spent {spent[0] * 1e-6:.3g} MB and {spent[1]:.3g} s; wrote {out_dir}")


def resolved(text: str) -> tuple[str, int]:
    """The address and the port of `HOST`, `HOST:PORT` or `[ADDRESS]:PORT`. Raises `ScenarioError`."""
    host, port = text, _core.PROBE_PORT
    if text.startswith("[") and "]" in text:
        host, _, rest = text[1:].partition("]")
        digits = rest.removeprefix(":")
    elif text.count(":") == 1:
        host, _, digits = text.partition(":")
    else:
        digits = ""
    if digits:
        if not digits.isascii() or not digits.isdigit() or not 0 < int(digits) < 65_536:
            raise _core.ScenarioError(f"HOST: expected HOST or HOST:PORT, found {text!r}")
        port = int(digits)
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        raise _core.ScenarioError(f"HOST: expected the name or address of a host, found {host!r}: {error}") from error
    return str(found[0][4][0]), port


NAMES = {
    "rate_bit_s": "rate",
    "base_rtt_s": "base RTT",
    "burst_bytes": "policer's burst",
    "links_bit_s": "links' rate",
    "buffer_bytes": "buffer",
    "loss": "random loss",
    "jitter_s": "jitter",
    "reordered": "reordered",
    "duplicated": "duplicated",
    "mtu_bytes": "MTU",
    "cross_bit_s": "cross traffic",
}


def table(found: Found) -> Table:
    """The figures for people."""
    head = [*text_heads("figure", "value and 95 % interval"), Head("cost", "MB"), *text_heads("method")]
    known = found.estimates.values()
    values = {name: known[key] for key, name in NAMES.items() if key in known}
    values |= {shown(name): value for name, value in found.figures.items()}
    rows: list[list[Cell]] = [
        [name, value.text, value.cost_bytes * 1e-6, value.method] for name, value in values.items()
    ]
    return Table("the path", head, rows)


def shown(key: str) -> str:
    """The name of a figure for people: its unit stands beside the value."""
    for unit in ("_bit_s", "_s_per_byte", "_s"):
        if key.endswith(unit):
            return key.removesuffix(unit).replace("_", " ") + (" per byte" if unit == "_s_per_byte" else "")
    return key.replace("_", " ")
