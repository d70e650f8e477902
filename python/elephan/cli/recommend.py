"""The command `elephan recommend`."""

import json
from typing import Annotated, Any

import typer

from elephan import _core
from elephan.base.numbers import number
from elephan.base.table import Head, Table, text_heads
from elephan.base.text import Terminal
from elephan.cli.options import assignments, command_line, words
from elephan.cli.progress import progress_bar
from elephan.studies.recommend import EVIDENCE, PUBLISHED, Recommendation, weights_of
from elephan.studies.recommend import recommend as run_recommendation
from elephan.studies.statistics import Estimate
from elephan.studies.theory import MODELLED

app = command_line()
out = Terminal()


@app.command()
def recommend(
    rate: Annotated[str, typer.Option(help="Rate of the path.")] = "1 Gbit/s",
    rtt: Annotated[str, typer.Option(help="Round-trip time of the path.")] = "120 ms",
    buffer: Annotated[str, typer.Option(help='Buffer of the bottleneck: "500 packets" or "20% bdp".')] = "500 packets",
    shared: Annotated[str, typer.Option(help="Kind of path: internet, dedicated or dedicated-shared.")] = "internet",
    weight: Annotated[
        list[str] | None,
        typer.Option(help="Set a weight, CRITERION=WEIGHT: fairness, throughput, overhead or convergence."),
    ] = None,
    cc: Annotated[str, typer.Option(help="Algorithms, separated by commas.")] = ",".join(MODELLED),
    duration: Annotated[
        str | None, typer.Option(help="Duration of every run. [default: as long as the algorithm needs on the path]")
    ] = None,
    repeat: Annotated[int, typer.Option(min=1, help="Number of runs of each experiment.")] = 3,
    as_json: Annotated[bool, typer.Option("--json", help="Print only JSON.")] = False,
) -> None:
    """Rank the algorithms for a path, by experiments and the ordered criteria of Li 2006, Table 2.2."""
    weights: dict[str, float] = {}
    for key, text in assignments(weight, "--weight", "CRITERION=WEIGHT").items():
        try:
            weights[key] = float(text)
        except ValueError as error:
            raise _core.ScenarioError(f"--weight: expected CRITERION=WEIGHT, found {f'{key}={text}'!r}") from error
    counted = weights_of(shared, weights)
    names = words(cc)
    if not names:
        raise _core.ScenarioError(f"--cc: expected algorithms separated by commas, found {cc!r}")
    with progress_bar(f"{len(names)} algorithms") as progress:
        found = run_recommendation(
            rate=rate, rtt=rtt, buffer=buffer, shared=shared, weights=weights, cc=names, duration=duration, repeats=repeat,
            progress=progress,
        )  # fmt: skip
    if as_json:
        typer.echo(json.dumps([_plain(r) for r in found], indent=2))
        return
    shown = ", ".join(f"{key} {value:g}" for key, value in counted.items())
    evidence = [e for e in EVIDENCE if e.name in found[0].evidence]
    rows = [
        [
            r.cc,
            r.score.text(3),
            *(number(r.scores[key].mean) for key in counted),
            *(e.metric.text(e.metric.estimated(r.evidence[e.name])) for e in evidence),
        ]
        for r in found
    ]
    head = [*text_heads("cc"), *map(Head, ("score", *counted)), *(Head(e.name, e.metric.short_unit) for e in evidence)]
    title = f"{rate}, {rtt}, buffer {buffer}, {shared}; weights: {shown}"
    out.print(Table(title, head, rows).to_terminal(out.width))
    best = found[0]
    equal = [r.cc for r in found[1:] if best.apart(r) is False]
    out.strong(best.cc, f"; with {repeat} repeats not significantly better than {', '.join(equal)}" if equal else "")
    published = ", ".join(PUBLISHED[shared])
    out.print(f"Li 2006, Table 10.1 recommends for such paths: {published}", highlight=False)


def _plain(r: Recommendation) -> dict[str, Any]:
    def numbers(estimate: Estimate) -> dict[str, float | int | None]:
        return {
            "mean": estimate.mean,
            "ci95_half_width": estimate.half_width,
            "values": estimate.values,
            "repeats": estimate.repeats,
        }

    return {
        "cc": r.cc,
        "score": numbers(r.score),
        "scores": {key: numbers(one) for key, one in r.scores.items()},
        "evidence": {key: numbers(one) for key, one in r.evidence.items()},
    }
