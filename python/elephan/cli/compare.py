"""`elephan compare`."""

import json
from pathlib import Path
from typing import Annotated

import typer

from elephan.base.folders import default, new_folder
from elephan.base.text import Terminal
from elephan.cli.options import Force, Isolate, Large, command_line, words
from elephan.cli.progress import progress_bar
from elephan.studies.compare import compare as run_comparison

FAILED = 1

app = command_line()
out = Terminal()
err = Terminal(stderr=True)


@app.command()
def compare(
    cc: Annotated[
        str, typer.Option(help="Algorithms, separated by commas.")
    ] = "reno,hstcp,scalable,htcp,bic,fast,ltcp",
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
        Path | None, typer.Option("--out", help="Results folder. [default: results/compare-...]")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print only the estimates, as JSON.")] = False,
    isolate: Isolate = False,
    large: Large = False,
    force: Force = False,
) -> None:
    """Compare algorithms on one path: a table with 95 % confidence intervals, and plots."""
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
            isolate=isolate,
            progress=progress,
        )
        result.write_into(place)
    result.draw(folder)
    for error in dict.fromkeys(error for errors in result.failed.values() for error in errors):
        err.message(error)
    code = FAILED if result.failed else 0
    if as_json:
        typer.echo(json.dumps(result.to_frame().to_dicts(), indent=2))
        raise typer.Exit(code)
    plural = "flow" if flows == 1 else "flows"
    title = (
        f"{flows} {plural}, {rate}, {rtt}, buffer {buffer}, {duration}, {repeat} runs each; ±: 95 % confidence interval"
    )
    out.print(result.table(title).to_terminal(out.width))
    out.print(f"results, table and plots in {folder}")
    raise typer.Exit(code)
