"""The command `elephan recommend`."""

import json
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from elephan import _core
from elephan.recommend import ALGORITHMS, PUBLISHED, weights_of
from elephan.recommend import recommend as run_recommendation

out = Console(width=max(Console().width, 170))


def recommend(
    rate: Annotated[str, typer.Option(help="Rate of the path.")] = "1 Gbit/s",
    rtt: Annotated[str, typer.Option(help="Its round-trip time.")] = "120 ms",
    buffer: Annotated[str, typer.Option(help='Its buffer: "500 packets", "20% bdp".')] = "500 packets",
    shared: Annotated[str, typer.Option(help="internet, dedicated or dedicated-shared.")] = "internet",
    weight: Annotated[
        list[str] | None, typer.Option(help="CRITERION=WEIGHT: fairness, throughput, overhead or convergence.")
    ] = None,
    cc: Annotated[str, typer.Option(help="Algorithms, separated by commas.")] = ",".join(ALGORITHMS),
    duration: Annotated[str, typer.Option(help="How long each run lasts; the first 20 s do not count.")] = "120 s",
    repeat: Annotated[int, typer.Option(min=1, help="Runs of each experiment.")] = 2,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON, and nothing else.")] = False,
) -> None:
    """Rank the algorithms for a path, by experiments on it and the ordered criteria of Li 2006, Table 2.2."""
    weights: dict[str, float] = {}
    for pair in weight or []:
        key, _, value = pair.partition("=")
        try:
            weights[key.strip()] = float(value)
        except ValueError as error:
            raise _core.ScenarioError(f"--weight: expected CRITERION=WEIGHT, found {pair!r}") from error
    counted = weights_of(shared, weights)
    found = run_recommendation(
        rate=rate, rtt=rtt, buffer=buffer, shared=shared, weights=weights,
        cc=tuple(name.strip() for name in cc.split(",")), duration=duration, repeats=repeat,
    )  # fmt: skip
    if as_json:
        rows = [
            {
                "cc": r.cc,
                "score": r.score,
                "scores": dict(r.scores),
                "evidence": {k: e.mean for k, e in r.evidence.items()},
            }
            for r in found
        ]
        typer.echo(json.dumps(rows, indent=2))
        return
    shown = ", ".join(f"{key} {value:g}" for key, value in counted.items())
    table = Table(title=f"{rate}, {rtt}, buffer {buffer}, {shared}; weights: {shown}", title_justify="left")
    table.add_column("cc")
    table.add_column("score", justify="right")
    for key in counted:
        table.add_column(key, justify="right")
    for key in found[0].evidence:
        table.add_column(key.replace(", ", "\n"), justify="right")
    for r in found:
        table.add_row(
            r.cc, f"{r.score:.3f}", *(f"{r.scores[key]:.2f}" for key in counted), *(_shown(e.mean) for e in r.evidence.values())
        )  # fmt: skip
    out.print(table)
    best = found[0]
    close = [r.cc for r in found[1:] if r.score > best.score - 0.03]
    out.print(f"[bold]{best.cc}[/]" + (f", closely followed by {', '.join(close)}" if close else ""))
    out.print(f"Li 2006, Table 10.1 recommends for such paths: {PUBLISHED[shared]}", highlight=False)


def _shown(value: float | None) -> str:
    return "never" if value is None else f"{value:.3g}"
