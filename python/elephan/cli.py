"""The command line: `elephan compare`, `run`, `scenario`, `plot`, and what other modules add to it."""

import json
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table

from elephan import _core, model_cli, recommend_cli, signals
from elephan.cells import drops, number, percent
from elephan.engines_cli import compare_engines
from elephan.folders import default, file_names, new_folder
from elephan.kernel import KernelError
from elephan.kernel.cli import app as kernel_app
from elephan.progress import progress_bar
from elephan.registry_cli import cc_app, queue_app
from elephan.report.cli import report
from elephan.reproduce import cli as reproduce_cli
from elephan.results import Run
from elephan.scenario import Scenario, load, schema
from elephan.settings import Large, assignments, words
from elephan.summary import LinkSummary
from elephan.sweeps import SweepError
from elephan.sweeps import cli as sweep_commands
from elephan.text import Terminal, accept_any_letter
from elephan.ui.cli import ui

app = typer.Typer(
    help="A laboratory for congestion control on long fat networks.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
scenario_app = typer.Typer(help="Scenario files.", no_args_is_help=True)
app.add_typer(model_cli.app, name="model")
app.command()(reproduce_cli.reproduce)
app.command()(recommend_cli.recommend)
app.add_typer(queue_app, name="queue")
app.add_typer(cc_app, name="cc")
app.add_typer(scenario_app, name="scenario")
app.add_typer(kernel_app, name="kernel")
app.command()(report)
app.command()(compare_engines)
sweep_commands.register(app)
app.command()(ui)

BAD_INPUT = 2
FAILED = 1

out = Terminal(least_width=132)
err = Terminal(stderr=True)

Force = Annotated[bool, typer.Option("--force", help="Replace the results folder where there is one.")]


def _class_table(link: LinkSummary) -> Table:
    table = Table(title=f"classes of {link.name}", title_justify="left")
    table.add_column("class")
    for head in ("throughput\nMbit/s, IP packets", "offered\npackets", "dropped", "queueing\nms, mean"):
        table.add_column(head, justify="right")
    for one in link.classes:
        throughput, delay = number(one.throughput_bit_s, 1e-6), number(one.queue_delay_mean_s, 1e3)
        table.add_row(one.name, throughput, str(one.offered), str(one.dropped), delay)
    return table


def _summary_tables(run: Run) -> Iterator[Table]:
    summary = run.summary
    window = f"from {summary.from_s:g} s to {summary.to_s:g} s"
    flows = Table(title=f"{run.scenario.name}: flows, {window}", title_justify="left")
    flows.add_column("flow")
    heads = (
        "start\ns",
        "goodput\nMbit/s",
        "mean cwnd\nsegments",
        "mean RTT\nms",
        "retransmitted\n%",
        "reductions",
        "timeouts",
    )
    for head in heads:
        flows.add_column(head, justify="right")
    for flow in summary.flows[:50]:
        flows.add_row(
            flow.label,
            number(flow.start_s),
            number(flow.goodput_bit_s, 1e-6),
            number(flow.cwnd_mean_segments, digits=1),
            number(flow.srtt_mean_s, 1e3, 1),
            percent(flow.retransmitted_bytes, flow.sent_bytes),
            str(flow.congestion_events),
            str(flow.timeouts),
        )
    if summary.flows:
        yield flows
    if any(flow.host for flow in summary.flows):
        yield _hosts_table(run)
    if summary.crowds:
        yield _crowds_table(run)
    if summary.streams:
        yield _streams_table(run)
    links = Table(title="links", title_justify="left")
    links.add_column("link")
    for head in (
        "utilisation\n%",
        "offered\npackets",
        "dropped",
        "marked",
        "lost",
        "queueing\nms, mean",
        "ms, 99 %",
        "queue\npackets, mean",
    ):
        links.add_column(head, justify="right")
    for link in summary.links[:50]:
        links.add_row(
            link.name,
            number(link.utilisation, 100, 1),
            str(link.offered),
            drops(link),
            str(link.marked),
            str(link.lost),
            number(link.queue_delay_mean_s, 1e3),
            number(link.queue_delay_p99_s, 1e3),
            number(link.queue_mean_packets, digits=1),
        )
    yield links
    for link in summary.links:
        if link.classes:
            yield _class_table(link)


def _hosts_table(run: Run) -> Table:
    table = Table(title="hosts of senders", title_justify="left")
    table.add_column("flow")
    for head in ("processor\nbusy, %", "backlog\npackets, most", "dropped\nby backlog", "stalls:\ndevice queue full"):
        table.add_column(head, justify="right")
    for flow in run.summary.flows[:50]:
        if (host := flow.host) is not None:
            busy = number(host.busy, 100, 1)
            table.add_row(flow.label, busy, str(host.backlog_max_packets), str(host.dropped), str(host.stalls))
    return table


def _crowds_table(run: Run) -> Table:
    table = Table(title="crowds of short flows", title_justify="left")
    table.add_column("crowd")
    heads = ("goodput\nMbit/s", "delivered\nMB", "transfers", "s, median", "s, 95 %", "pages", "s, median", "s, 95 %")
    for head in (*heads, "retransmitted\n%", "failed"):
        table.add_column(head, justify="right")
    for crowd in run.summary.crowds[:50]:
        cells = []
        for ended in (crowd.transfers, crowd.pages):
            cells += ["-"] * 3 if ended is None else [str(ended.count), number(ended.p50_s), number(ended.p95_s)]
        table.add_row(
            crowd.label,
            number(crowd.goodput_bit_s, 1e-6),
            number(crowd.delivered_bytes, 1e-6, 1),
            *cells,
            percent(crowd.retransmitted_bytes, crowd.sent_bytes),
            str(crowd.failed),
        )
    return table


def _streams_table(run: Run) -> Table:
    table = Table(title="streams of datagrams", title_justify="left")
    table.add_column("stream")
    heads = ("goodput\nMbit/s", "sent\npackets", "received", "lost\n%", "reordered", "delay\nms, mean", "ms, 99 %")
    for head in (*heads, "jitter\nms"):
        table.add_column(head, justify="right")
    for stream in run.summary.streams[:50]:
        table.add_row(
            stream.label,
            number(stream.goodput_bit_s, 1e-6),
            str(stream.sent),
            str(stream.received),
            percent(stream.lost, stream.received + stream.lost),
            str(stream.reordered),
            number(stream.delay_mean_s, 1e3, 3),
            number(stream.delay_p99_s, 1e3, 3),
            number(stream.jitter_s, 1e3, 3),
        )
    return table


@app.command()
def run(
    file: Annotated[Path, typer.Argument(help="The scenario file.")],
    settings: Annotated[list[str] | None, typer.Option("--set", help="KEY=VALUE, such as path.rtt=162ms.")] = None,
    seed: Annotated[int | None, typer.Option(help="The seed, in place of the file's.")] = None,
    engine: Annotated[
        str | None,
        typer.Option(help="What runs it, in place of the file's: sim, model, or linux (this kernel's TCP, as root)."),
    ] = None,
    out_dir: Annotated[Path | None, typer.Option("--out", help="The results folder. [default: results/NAME]")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the summary as JSON, and nothing else.")] = False,
    trace: Annotated[str | None, typer.Option(help="`events` keeps every event.")] = None,
    pcap: Annotated[list[str] | None, typer.Option(help="Name of a link whose packets are captured.")] = None,
    large: Large = False,
    force: Force = False,
) -> None:
    """Run a scenario file, print what came of it, and write a results folder."""
    changes = assignments(settings)
    if seed is not None:
        changes["seed"] = str(seed)
    if engine is not None:
        changes["engine"] = engine
    if trace is not None:
        if trace != "events":
            raise _core.ScenarioError(f'--trace: expected "events", found "{trace}"')
        changes["trace.events"] = "true"
    if pcap:
        changes["trace.pcap"] = json.dumps(pcap)
    scenario = load(file, changes, large=large)
    folder = out_dir or default(scenario.name)
    if scenario.document.get("sweep"):
        raise _core.ScenarioError(f"{file}: expected a single run, found a sweep; use `elephan sweep {file}`")
    with new_folder(folder, force=force) as place:
        result = _run_one(scenario, place)
    # What was run is kept from here on, whatever becomes of showing it.
    _show(result, folder, as_json=as_json)


def _run_one(scenario: Scenario, place: Path) -> Run:
    from elephan.simulate import run as simulate

    files = file_names(scenario.document["trace"]["pcap"])
    captures = {link: str(place / f"{file}.pcap") for link, file in files.items()}
    with progress_bar(scenario.name) as progress:
        result = simulate(scenario, progress=progress, captures=captures)
    result.write_into(place)
    return result


def _show(result: Run, folder: Path, *, as_json: bool) -> None:
    from elephan import plots

    if as_json:
        typer.echo(json.dumps(result.summary.to_dict(), indent=2))
        return
    for table in _summary_tables(result):
        out.print(table)
    for reason in result.provenance.get("quality", {}).get("invalid_because", ()):
        err.message(f"invalid run: {reason}")
    plots.save_beside(folder, {what: partial(plots.over_time, result, what) for what in ("cwnd", "goodput")})
    out.print(f"results in {folder}")


@app.command()
def compare(
    cc: Annotated[
        str, typer.Option(help="Algorithms, separated by commas.")
    ] = "reno,hstcp,scalable,htcp,bic,fast,ltcp",
    rate: Annotated[str, typer.Option(help="Rate of the bottleneck, counting IP packets.")] = "250 Mbit/s",
    rtt: Annotated[str, typer.Option(help="Round-trip time without queueing.")] = "82 ms",
    buffer: Annotated[str, typer.Option(help='Its queue: "20% bdp", "500 packets" or "750 kB".')] = "20% bdp",
    flows: Annotated[int, typer.Option(min=1, help="How many flows share it.")] = 2,
    duration: Annotated[str, typer.Option(help="How long each run lasts.")] = "300 s",
    repeat: Annotated[int, typer.Option(min=1, help="How many runs of each algorithm, with seeds of their own.")] = 5,
    seed: Annotated[int, typer.Option(min=0, help="The first seed.")] = 1,
    start_within: Annotated[
        str, typer.Option(help="The flows after the first start at random within this time.")
    ] = "20 s",
    out_dir: Annotated[
        Path | None, typer.Option("--out", help="The results folder. [default: results/compare-...]")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the estimates as JSON, and nothing else.")] = False,
    large: Large = False,
    force: Force = False,
) -> None:
    """Compare algorithms on one path: a table with 95 % confidence intervals, and plots."""
    from elephan.compare import compare as run_comparison
    from elephan.metrics import METRICS

    names = words(cc)
    folder = out_dir or default(f"compare-{rate}-{rtt}-{buffer}-{flows}-flows-{duration}-seed-{seed}")
    with new_folder(folder, force=force) as place, progress_bar(f"{len(names)} algorithms x {repeat} runs") as progress:
        result = run_comparison(
            cc=names,
            rate=rate,
            rtt=rtt,
            buffer=buffer,
            flows=flows,
            duration=duration,
            repeat=repeat,
            seed=seed,
            start_within=start_within,
            large=large,
            progress=progress,
        )
        result.write_into(place)
    result.draw(folder)
    if as_json:
        typer.echo(json.dumps(result.to_frame().to_dicts(), indent=2))
        return
    plural = "flow" if flows == 1 else "flows"
    table = Table(
        title=f"{flows} {plural}, {rate}, {rtt}, buffer {buffer}, {duration}, {repeat} runs each; ± is the 95 % interval",
        title_justify="left",
    )
    table.add_column("cc", no_wrap=True)
    for metric in METRICS:
        table.add_column(f"{metric.name}\n{metric.unit}", justify="right")
    for name, estimates in result.estimates().items():
        table.add_row(name, *(estimates[metric.name].text(metric.digits) for metric in METRICS))
    out.print(table)
    out.print(f"results, table and plots in {folder}")


@scenario_app.command("check")
def scenario_check(
    file: Annotated[Path, typer.Argument(help="The scenario file.")],
    settings: Annotated[list[str] | None, typer.Option("--set", help="KEY=VALUE, such as path.rtt=162ms.")] = None,
    large: Large = False,
) -> None:
    """Check a scenario file: exit code 0 where it can be run, 2 with a line for each mistake where not.

    Of a good one it tells the largest run: upper bounds of its events, its rows and its memory.
    """
    text = load(file, assignments(settings), large=large).to_json()
    expansion, most = _core.Expansion(text), _core.estimate(text)
    points = expansion.points * expansion.repeats
    out.print(f"{file}: good, {points} run{'s' if points > 1 else ''}")
    figures = (("events", "events", 1.0), ("rows", "rows", 1.0), ("bytes", "MB of memory", 1e-6))
    for name, unit, scale in figures:
        amount, key = most[name]
        out.print(f"at most {amount * scale:.2g} {unit}, most of them for {key}", highlight=False, soft_wrap=True)


@scenario_app.command("schema")
def scenario_schema() -> None:
    """Print the JSON Schema of the scenario file."""
    typer.echo(json.dumps(schema(), indent=2))


@app.command()
def plot(
    folder: Annotated[Path, typer.Argument(help="A results folder.")],
    what: Annotated[str, typer.Option(help="cwnd, goodput, srtt or queue.")] = "cwnd",
    to: Annotated[Path | None, typer.Option("--to", help="The picture. [default: FOLDER/WHAT.png]")] = None,
) -> None:
    """Draw a quantity over time from a results folder."""
    from elephan import plots

    if not (folder / "run.json").is_file():
        raise _core.ScenarioError(f"{folder}: expected a results folder with run.json, found none")
    picture = to or folder / f"{what}.png"
    run = Run.load(folder)
    try:
        figure = run.plot(what)
    except ValueError as error:
        raise _core.ScenarioError(str(error)) from error
    plots.save(figure, picture)
    out.print(f"{picture}")


def _version(value: bool) -> None:
    if value:
        out.message(f"elephan {_core.__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    pass


def main() -> None:
    """Run the command line: one clear line for each mistake, and never a traceback."""
    signals.heed()
    accept_any_letter()
    try:
        code = app(standalone_mode=False)
    except typer.Exit as stop:
        code = stop.exit_code
    except (typer.Abort, KeyboardInterrupt):
        code = FAILED
    except _core.ScenarioError as error:
        err.print(str(error), markup=False, highlight=False, soft_wrap=True)
        code = BAD_INPUT
    except (KernelError, SweepError) as error:
        err.print(str(error), markup=False, highlight=False, soft_wrap=True)
        code = FAILED
    except FileExistsError as error:
        err.print(str(error), markup=False, highlight=False, soft_wrap=True)
        code = BAD_INPUT
    except FileNotFoundError as error:
        err.print(f"{error.filename}: expected a file, found none", markup=False, highlight=False, soft_wrap=True)
        code = BAD_INPUT
    except OSError as error:
        text = f"{error.filename}: {error.strerror}" if error.filename else str(error.strerror or error)
        err.print("; ".join([text, *getattr(error, "__notes__", [])]), markup=False, highlight=False, soft_wrap=True)
        code = FAILED
    except Exception as error:
        # What typer itself refuses: unknown options, values out of range.
        if hasattr(error, "format_message"):
            err.print(f"elephan: {error.format_message()}", markup=False, highlight=False, soft_wrap=True)
        elif signals.stopped() is None:
            raise
        code = BAD_INPUT
    # Not caught above: typer makes an exit code of it, and a library an error of its own.
    if (stopped := signals.stopped()) is not None:
        kept = getattr(stopped, "__notes__", ["nothing was written"])
        err.print("; ".join(["interrupted", *kept]), markup=False, highlight=False, soft_wrap=True)
        code = 128 + stopped.number
    sys.exit(code or 0)
