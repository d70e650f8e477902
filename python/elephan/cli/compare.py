"""`elephan compare`."""

from pathlib import Path
from typing import Annotated

import typer

from elephan import _core
from elephan.api.metrics import METRICS
from elephan.api.scenario import dumbbell, flow
from elephan.base.errors import given_as
from elephan.base.folders import default, new_folder
from elephan.base.table import Head
from elephan.cli import FAILED, complete
from elephan.cli.options import Force, Isolate, Large, command_line, words
from elephan.cli.output import Columns, Form, chosen, err, named, out, show_estimates, told
from elephan.cli.progress import announce, progress_bar

# The metrics that are shown where they differ, unless others are asked for.
USUAL = ("goodput", "fairness", "stability", "convergence", "loss", "queueing")
# What gives the keys of the scenarios.
OPTIONS = {
    "path.rate": "--rate",
    "path.rtt": "--rtt",
    "path.buffer": "--buffer",
    "flow.cc": "--cc",
    "duration": "--duration",
    "seed": "--seed",
}

app = command_line()


@app.command()
def compare(
    cc: Annotated[
        str, typer.Option(help="Algorithms, separated by commas.", autocompletion=complete.list_of(complete.cc_names))
    ] = "reno, cubic, bbr, hstcp, scalable, htcp, bic, fast, ltcp",
    against: Annotated[
        str | None,
        typer.Option(
            help="Let one flow of each meet flows of this algorithm: shares and harm.",
            autocompletion=complete.one_of(complete.cc_names),
        ),
    ] = None,
    rate: Annotated[str, typer.Option(help="Rate of the bottleneck, counting IP packets.")] = "250 Mbit/s",
    rtt: Annotated[str, typer.Option(help="Round-trip time without queueing.")] = "82 ms",
    buffer: Annotated[
        str, typer.Option(help='Buffer of the bottleneck: "20% bdp", "500 packets" or "750 kB".')
    ] = "20% bdp",
    flows: Annotated[int, typer.Option(min=1, help="Number of flows.")] = 2,
    duration: Annotated[str, typer.Option(help="Duration of each run.")] = "300 s",
    repeat: Annotated[int, typer.Option(min=1, help="Number of runs of each algorithm, each with another seed.")] = 5,
    seed: Annotated[int, typer.Option(min=0, help="First seed.")] = 1,
    start_within: Annotated[str, typer.Option(help="Flows after the first start at random within this time.")] = "20 s",
    out_dir: Annotated[
        Path | None, typer.Option("--out", help="Results folder.", show_default="results/compare-...")
    ] = None,
    columns: Columns = None,
    form: Form = "table",
    isolate: Isolate = False,
    large: Large = False,
    force: Force = False,
) -> None:
    """Compare algorithms on one path: a table with 95 % confidence intervals, and plots."""
    # Completion waits for the import of this module, and matplotlib takes a second.
    from elephan.studies.compare import compare as run_comparison  # noqa: PLC0415

    names = words(cc)
    if not names:
        raise _core.ScenarioError(f"--cc: expected algorithms separated by commas, found {cc!r}")
    _last(duration, start_within, flows)
    if against is not None:
        if flows < 2:
            raise _core.ScenarioError(f"--flows: expected at least 2 with --against, found {flows}")
        with given_as({**OPTIONS, "flow.cc": "--against"}):
            dumbbell(rate=rate, rtt=rtt, buffer=buffer, duration=duration, flows=[flow(against)], large=large)
    of_rivals = ("share", "others' share", "harm") if against is not None else ()
    wanted = named(columns, [*(metric.head for metric in METRICS), *map(Head, of_rivals)])
    with given_as(OPTIONS):
        first = [
            dumbbell(rate=rate, rtt=rtt, buffer=buffer, duration=duration, flows=[flow(name, count=flows)], large=large)
            for name in dict.fromkeys([*names, *([against] if against else [])])
        ]
    announce(first, repeat)
    rivals = f"-against-{against}" if against else ""
    folder = out_dir or default(f"compare-{rate}-{rtt}-{buffer}-{flows}-flows{rivals}-{duration}-seed-{seed}")
    with (
        given_as(OPTIONS),
        new_folder(folder, force=force) as place,
        progress_bar(f"{', '.join(names)}: {repeat * len(names)} runs") as progress,
    ):
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
            isolate=isolate,
            progress=progress,
            against=against,
        )
        result.write_into(place)
    result.draw(folder)
    for error in dict.fromkeys(error for errors in result.failed.values() for error in errors):
        err.message(error)
    code = FAILED if result.failed else 0
    plural = "flow" if flows == 1 else "flows"
    met = f", one against {flows - 1} of {against}" if against else ""
    title = f"{flows} {plural}{met}, {rate}, {rtt}, buffer {buffer}, {duration}, {repeat} runs each"
    note = "±, or the numbers in brackets: 95 % confidence interval" if repeat > 1 else ""
    table = result.table(title, note)
    table = told(table, (*of_rivals, *USUAL)) if wanted is None else chosen([table], wanted)[0]
    show_estimates(table, result.to_polars("estimates").to_dicts(), form, wanted)
    if form == "table":
        out.message(f"results, table and plots in {folder}")
    raise typer.Exit(code)


def _last(duration: str, start_within: str, flows: int) -> None:
    """Refuse runs that end before all flows have started: measured is from then on."""
    seconds = {}
    for option, text in (("--duration", duration), ("--start-within", start_within)):
        try:
            seconds[option] = _core.seconds(text)
        except _core.ScenarioError as error:
            raise _core.ScenarioError(f"{option}: {error}") from error
    if flows > 1 and seconds["--duration"] <= seconds["--start-within"]:
        raise _core.ScenarioError(
            f'--duration: expected more than --start-within, "{start_within}", in which all flows start, found "{duration}"'
        )
