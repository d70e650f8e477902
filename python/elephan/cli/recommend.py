"""The command `elephan path recommend`."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from elephan import _core
from elephan.base.numbers import number
from elephan.base.table import Head, Table, text_heads
from elephan.cli import complete
from elephan.cli.compare import OPTIONS
from elephan.cli.options import Force, assignments, command_line, given_as, words
from elephan.cli.output import Columns, Form, chosen, named, out, show_estimates
from elephan.cli.progress import announce, progress_bar
from elephan.cli.recommend_path import for_path
from elephan.paths.recommend import USUAL_CC, USUAL_STREAMS
from elephan.studies.recommend import PUBLISHED, Evidence, Recommendation, evidence_of, weights_of
from elephan.studies.recommend import recommend as run_recommendation
from elephan.studies.statistics import NOTABLE, notable
from elephan.studies.theory import MODELLED

# Options that only one of the two kinds of ranking has.
OF_EXPERIMENTS = ("rate", "rtt", "buffer", "shared", "weight", "duration", "repeat", "columns")
OF_PATHS = {"size": "--size", "streams": "--streams", "draws": "--draws", "to_folder": "--out", "force": "--force"}

app = command_line()


@app.command()
def recommend(
    context: typer.Context,
    rate: Annotated[str, typer.Option(help="Rate of the path.")] = "1 Gbit/s",
    rtt: Annotated[str, typer.Option(help="Round-trip time of the path.")] = "120 ms",
    buffer: Annotated[str, typer.Option(help='Buffer of the bottleneck: "500 packets" or "20% bdp".')] = "500 packets",
    shared: Annotated[str, typer.Option(help="Kind of path: internet, dedicated or dedicated-shared.")] = "internet",
    weight: Annotated[
        list[str] | None,
        typer.Option(help="Set a weight, CRITERION=WEIGHT: fairness, throughput, overhead or convergence."),
    ] = None,
    cc: Annotated[
        str | None,
        typer.Option(
            help="Algorithms, separated by commas.",
            autocompletion=complete.list_of(complete.cc_names),
            show_default=f"{', '.join(MODELLED)}; with --path {', '.join(USUAL_CC)}",
        ),
    ] = None,
    duration: Annotated[
        str | None,
        typer.Option(help="Duration of every run.", show_default="as long as the algorithm needs on the path"),
    ] = None,
    repeat: Annotated[int, typer.Option(min=1, help="Number of runs of each experiment.")] = 5,
    path: Annotated[
        Path | None,
        typer.Option(
            help="Rank ways to send --size over this measured path instead: path.toml, with path.json beside it."
        ),
    ] = None,
    size: Annotated[str | None, typer.Option(help="With --path: data to send, such as 1TB.")] = None,
    streams: Annotated[str, typer.Option(help="With --path: numbers of streams, separated by commas.")] = ",".join(
        map(str, USUAL_STREAMS)
    ),
    draws: Annotated[
        int,
        typer.Option(
            min=1, max=100, help="With --path: simulations of each of the best ways, with draws over the intervals."
        ),
    ] = 5,
    to_folder: Annotated[
        Path | None,
        typer.Option(
            "--out", help="With --path: folder for recommendation.json and prediction.json; may be that of the path."
        ),
    ] = None,
    force: Force = False,
    columns: Columns = None,
    form: Form = "table",
) -> None:
    """Rank the algorithms for a path, by experiments and the ordered criteria of Li 2006, Table 2.2.

    With --path, rank algorithms and numbers of streams for sending --size over a measured path.
    """
    usual = {one.name: one.default for one in context.command.params}
    given = {name: value for name, value in context.params.items() if value not in (usual[name], ())}
    if path is not None:
        for name in OF_EXPERIMENTS:
            if name in given:
                raise _core.ScenarioError(f"--{name}: expected none with --path, found {given[name]!r}")
        for_path(
            path,
            size,
            words(streams),
            words(cc) if cc is not None else None,
            draws,
            to_folder,
            force=force,
            form=form,
        )
        return
    for name, option in OF_PATHS.items():
        if name in given:
            raise _core.ScenarioError(f"{option}: expected --path with it, found none")
    weights: dict[str, float] = {}
    for key, text in assignments(weight, "--weight", "CRITERION=WEIGHT").items():
        try:
            weights[key] = float(text)
        except ValueError as error:
            raise _core.ScenarioError(f"--weight: expected CRITERION=WEIGHT, found {f'{key}={text}'!r}") from error
    counted = weights_of(shared, weights)
    evidence = evidence_of(shared, counted)
    wanted = named(columns, [Head(name) for name in ("score", *counted, *(e.name for e in evidence))])
    names = words(cc if cc is not None else ",".join(MODELLED))
    if not names:
        raise _core.ScenarioError(f"--cc: expected algorithms separated by commas, found {cc!r}")
    with given_as(OPTIONS), progress_bar(f"{len(names)} algorithms") as progress:
        found = run_recommendation(
            rate=rate, rtt=rtt, buffer=buffer, shared=shared, weights=weights, cc=names, duration=duration, repeats=repeat,
            progress=progress, starting=announce,
        )  # fmt: skip
    shown = ", ".join(f"{key} {value:g}" for key, value in counted.items())
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
    best_cc = notable({r.cc: dict(enumerate(r.repeats)) for r in found}, "higher")
    marked = frozenset((row, 1) for row, r in enumerate(found) if r.cc == best_cc)
    table = Table(title, head, rows, marked=marked, mark=NOTABLE)
    if wanted is not None:
        (table,) = chosen([table], wanted)
    show_estimates(table, [one for r in found for one in _records(r, evidence)], form, wanted)
    if form != "table":
        return
    best = found[0]
    equal = [r.cc for r in found[1:] if best.apart(r) is False]
    out.strong(best.cc, f"; with {repeat} repeats not significantly better than {', '.join(equal)}" if equal else "")
    published = ", ".join(PUBLISHED[shared])
    out.print(f"Li 2006, Table 10.1 recommends for such paths: {published}", highlight=False)


def _records(r: Recommendation, evidence: Sequence[Evidence]) -> Iterator[dict[str, Any]]:
    """The score, its criteria and their evidence, each with its interval, in its unit."""
    parts = [("score", "", r.score), *((key, "", one) for key, one in r.scores.items())]
    parts += [(e.name, e.metric.short_unit, e.metric.estimated(r.evidence[e.name])) for e in evidence]
    for name, unit, one in parts:
        figures = {key: getattr(one, key) for key in ("mean", "low", "high", "values", "repeats")}
        yield {"cc": r.cc, "metric": name, "unit": unit, **figures}
