"""The command `elephan model rank`."""

from collections.abc import Iterator, Sequence
from typing import Annotated, Any

import typer

from elephan import _core
from elephan.base.errors import given_as
from elephan.base.numbers import number
from elephan.base.table import Head, Table, text_heads
from elephan.cli import complete
from elephan.cli.options import Large, assignments, words
from elephan.cli.output import Columns, Form, chosen, named, out, show_estimates
from elephan.cli.progress import announce, progress_bar
from elephan.studies.recommend import PUBLISHED, Evidence, Recommendation, evidence_of, weights_of
from elephan.studies.recommend import recommend as run_recommendation
from elephan.studies.statistics import NOTABLE, notable
from elephan.studies.theory import MODELLED

# What gives the keys of the scenarios.
OPTIONS = {f"path.{key}": f"--{key}" for key in ("rate", "rtt", "buffer")} | {
    "flow.cc": "--cc",
    "duration": "--duration",
}


def rank(
    rate: Annotated[str, typer.Option(help="Rate of the path.")] = "1 Gbit/s",
    rtt: Annotated[str, typer.Option(help="Round-trip time of the path.")] = "120 ms",
    buffer: Annotated[str, typer.Option(help='Buffer of the bottleneck: "20% bdp" or "500 packets".')] = "20% bdp",
    shared: Annotated[str, typer.Option(help="Kind of path: internet, dedicated or dedicated-shared.")] = "internet",
    weight: Annotated[
        list[str] | None,
        typer.Option(help="Set a weight, CRITERION=WEIGHT: fairness, throughput, overhead or convergence."),
    ] = None,
    cc: Annotated[
        str, typer.Option(help="Algorithms, separated by commas.", autocompletion=complete.list_of(lambda: MODELLED))
    ] = ", ".join(MODELLED),
    duration: Annotated[
        str | None,
        typer.Option(help="Duration of every run.", show_default="as long as the algorithm needs on the path"),
    ] = None,
    repeat: Annotated[int, typer.Option(min=1, help="Number of runs of each experiment.")] = 5,
    columns: Columns = None,
    form: Form = "table",
    large: Large = False,
) -> None:
    """Rank the algorithms that have a model for a path, by experiments and the ordered criteria of Li 2006, Table 2.2."""
    weights: dict[str, float] = {}
    for key, text in assignments(weight, "--weight", "CRITERION=WEIGHT").items():
        try:
            weights[key] = float(text)
        except ValueError as error:
            raise _core.ScenarioError(f"--weight: expected CRITERION=WEIGHT, found {f'{key}={text}'!r}") from error
    counted = weights_of(shared, weights)
    evidence = evidence_of(shared, counted)
    wanted = named(columns, [Head(name) for name in ("score", *counted, *(e.name for e in evidence))])
    names = words(cc)
    if not names:
        raise _core.ScenarioError(f"--cc: expected algorithms separated by commas, found {cc!r}")
    if unknown := [name for name in names if name not in MODELLED]:
        raise _core.ScenarioError(
            f"--cc: expected algorithms with a model, which says how long their epochs are: {', '.join(MODELLED)}; found "
            f"{unknown[0]!r}; `elephan path recommend` has all"
        )
    with given_as(OPTIONS), progress_bar(f"{len(names)} algorithms") as progress:
        found = run_recommendation(
            rate=rate, rtt=rtt, buffer=buffer, shared=shared, weights=weights, cc=names, duration=duration, repeats=repeat,
            progress=progress, starting=announce, large=large,
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
