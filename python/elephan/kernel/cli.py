"""`elephan kernel`: the published algorithms in the running kernel."""

import json
import platform
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from elephan import _core, kernel
from elephan.kernel import build, libbpf
from elephan.kernel.loader import BTF, known

app = typer.Typer(help="The published algorithms in the running Linux kernel.", no_args_is_help=True)
out = Console(width=max(Console().width, 132))

Name = Annotated[str, typer.Argument(help="Name of the algorithm, as in `elephan cc list`.")]


def _value(text: str) -> float | bool | str:
    try:
        value = json.loads(text)
    except json.JSONDecodeError:
        return text
    return value if isinstance(value, bool | float | int | str) else text


@app.command("load")
def load(
    name: Name,
    settings: Annotated[list[str] | None, typer.Option("--set", help="PARAMETER=VALUE, such as a=0.02.")] = None,
) -> None:
    """Load an algorithm: any program can then choose it, until it is unloaded."""
    chosen = {}
    for pair in settings or []:
        key, equals, value = pair.partition("=")
        if not equals:
            raise _core.ScenarioError(f"--set: expected PARAMETER=VALUE, found {pair!r}")
        chosen[key.strip()] = _value(value.strip())
    registered = kernel.load(name, chosen)
    out.print(
        f'loaded as {registered}: setsockopt(TCP_CONGESTION, "{registered}"), or iperf3 -C {registered}', markup=False
    )


@app.command("unload")
def unload(name: Name) -> None:
    """Unload an algorithm. Connections that use it go on with it until they end."""
    kernel.unload(name)
    out.print(f"unloaded {known(name).registered}")


@app.command("list")
def list_() -> None:
    """List the algorithms that can be loaded, and which of them are."""
    there = kernel.available()
    table = Table(title_justify="left")
    for head in ("name", "what it is", "registers as", "loaded"):
        table.add_column(head)
    for entry in kernel.algorithms().values():
        table.add_row(entry.name, entry.title, entry.registered, "yes" if entry.registered in there else "no")
    out.print(table)


@app.command("status")
def status() -> None:
    """Say what this machine has and lacks, and what is loaded and in use."""
    out.print(f"kernel {platform.release()}, BTF {'yes' if BTF.exists() else 'no'}", highlight=False)
    out.print(f"clang {build.clang() or 'none'}, objects in {build.cache()}", highlight=False)
    try:
        out.print(f"libbpf {libbpf.version()}", highlight=False)
    except kernel.KernelError:
        out.print("libbpf none")
    lines = kernel.missing()
    for line in lines:
        out.print(f"missing: {line}", markup=False, highlight=False)
    if lines:
        raise typer.Exit(1)
    table = Table(title="loaded", title_justify="left")
    table.add_column("name")
    table.add_column("connections, about", justify="right")
    for entry in kernel.loaded():
        table.add_row(entry.registered, str(entry.users))
    out.print(table)
