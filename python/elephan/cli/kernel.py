"""`elephan kernel`: the published algorithms in the running kernel; images of kernels that run as a process."""

import platform
from pathlib import Path
from typing import Annotated

import typer

from elephan import kernel
from elephan.api.metrics import declared
from elephan.api.scenario import load as load_scenario
from elephan.base.numbers import number
from elephan.base.table import Head, Table, text_heads
from elephan.cli.options import Settings, assignments, command_line, parameter
from elephan.cli.output import Form, err, out, show
from elephan.cli.progress import progress_bar
from elephan.guest import image
from elephan.kernel import build, libbpf
from elephan.kernel.loader import BTF, known
from elephan.studies.iperf3 import check

app = command_line(group=True)

Name = Annotated[str, typer.Argument(help="Name of the algorithm, as in `elephan cc list`.")]


@app.command("load")
def load(
    name: Name,
    settings: Annotated[list[str] | None, typer.Option("--set", help="PARAMETER=VALUE, such as a=0.02.")] = None,
) -> None:
    """Load an algorithm. Any program can then select it, until it is unloaded."""
    chosen = {key: parameter(text) for key, text in assignments(settings, form="PARAMETER=VALUE").items()}
    registered = kernel.load(name, chosen)
    out.print(f'loaded as {registered}: setsockopt(TCP_CONGESTION, "{registered}"), or iperf3 -C {registered}')


@app.command("unload")
def unload(name: Name) -> None:
    """Unload an algorithm. Connections that use it keep it until they end."""
    kernel.unload(name)
    out.print(f"unloaded {known(name).registered}")


@app.command("list")
def list_(form: Form = "table") -> None:
    """List the algorithms, and show which are loaded."""
    there = kernel.available()
    rows = [
        [entry.name, entry.title, entry.registered, "yes" if entry.registered in there else "no"]
        for entry in kernel.algorithms().values()
    ]
    show([Table("", text_heads("name", "title", "registered name", "loaded"), rows)], form)


@app.command("iperf3")
def iperf3(
    file: Annotated[Path, typer.Argument(help="Scenario file with unlimited flows of one algorithm.")],
    settings: Settings = None,
    form: Form = "table",
) -> None:
    """Run a scenario with Elephan's traffic, then with iperf3's over the same links, as an independent check. Needs root."""
    found = check(load_scenario(file, assignments(settings)))
    own, links = found.own.summary, found.links.summary
    goodput = declared("Summary", "goodput_bit_s", digits=2)
    rows = [
        [goodput.label, goodput.cell(own), goodput.text(goodput.scaled(found.goodput_bit_s))],
        ["the link's utilisation", number(own.utilisation), number(links.utilisation)],
        ["segments retransmitted", f"{found.own_retransmits}", f"{found.retransmits}"],
    ]
    title = f"{found.own.scenario.name}: measured by Elephan, and by iperf3"
    show([Table(title, [*text_heads("quantity"), Head("Elephan"), Head("iperf3")], rows)], form)
    for who, run in (("Elephan", found.own), ("iperf3", found.links)):
        for reason in run.provenance["quality"]["invalid_because"]:
            err.message(f"with {who}'s traffic the run is not valid: {reason}")


@app.command("status")
def status() -> None:
    """Show what this machine supports and lacks, and which algorithms are loaded and in use."""
    out.print(f"kernel {platform.release()}, BTF {'yes' if BTF.exists() else 'no'}", highlight=False)
    out.print(f"clang {build.clang() or 'none'}, objects in {build.shipped() or build.cache()}", highlight=False)
    try:
        out.print(f"libbpf {libbpf.version()}", highlight=False)
    except kernel.KernelError:
        out.print("libbpf none")
    lines = kernel.missing()
    for line in lines:
        out.print(f"missing: {line}", highlight=False)
    if lines:
        raise typer.Exit(1)
    rows = [[entry.registered, str(entry.users)] for entry in kernel.loaded()]
    out.show(Table("loaded", [*text_heads("name"), Head("connections, about")], rows))


@app.command("build")
def build_(
    source: Annotated[
        str,
        typer.Argument(
            help="A kernel's tree, a tarball of one, or a Debian package with one, such as linux-source-6.1."
        ),
    ] = image.DEFAULT,
    force: Annotated[bool, typer.Option("--force", help="Build an image that is there already again.")] = False,
) -> None:
    """Build the image of a kernel for `--engine kernel`, once. Takes 4 minutes of processor time; needs no root."""
    with progress_bar(f"kernel of {source}") as progress:
        made = image.build(source, force=force, progress=progress)
    out.message(f"Linux {made.version}: {made.path}, built {made.built}")


@app.command("images")
def images(form: Form = "table") -> None:
    """List the images that `--engine kernel` can run."""
    rows = [
        [one.version, "outdated: build it again" if one.outdated else "yes", one.built, one.compiler, str(one.path)]
        for one in image.images()
    ]
    if not rows:
        image.find()
    show([Table("", text_heads("version", "usable", "built", "compiler", "file"), rows)], form)
