"""`elephan path recommend`: ways to send so much data over a path, measured or given by its values."""

from pathlib import Path
from typing import Annotated

import typer

from elephan import _core
from elephan.api.run import write_json
from elephan.api.scenario import dumbbell, flow
from elephan.base.errors import given_as
from elephan.base.folders import check_new, new_file, new_folder
from elephan.cli import complete
from elephan.cli.options import Force, bytes_of, command_line, rate_of, seconds_of, words
from elephan.cli.output import Form, out, show
from elephan.cli.progress import progress_bar
from elephan.cli.progress import span as roughly
from elephan.paths import predict, scenario
from elephan.paths.estimates import Estimates
from elephan.paths.given import of_values, read_path
from elephan.paths.recommend import ORDER, USUAL_CC, USUAL_STREAMS, Advice, effort, to_dict
from elephan.paths.recommend import recommend as rank
from elephan.paths.tables import of_bottlenecks, of_ways, span
from elephan.paths.ways import Way, ways

DOCUMENT = "recommendation.json"
BUFFER = "20% bdp"

app = command_line()


@app.command()
def recommend(
    size: Annotated[str, typer.Option(help="Data to send, such as 1TB.")],
    path: Annotated[
        Path | None, typer.Option(help="Scenario of the path: path.toml, with path.json beside it if it was measured.")
    ] = None,
    rate: Annotated[str | None, typer.Option(help="In place of --path: rate of the bottleneck.")] = None,
    rtt: Annotated[str | None, typer.Option(help="In place of --path: round-trip time without queueing.")] = None,
    buffer: Annotated[
        str | None, typer.Option(help="In place of --path: buffer of the bottleneck.", show_default=BUFFER)
    ] = None,
    loss: Annotated[
        float | None,
        typer.Option(
            min=0,
            max=0.5,
            help="In place of --path: share of packets lost for other reasons than a full queue.",
            show_default="0",
        ),
    ] = None,
    cc: Annotated[
        str, typer.Option(help="Algorithms, separated by commas.", autocompletion=complete.list_of(complete.cc_names))
    ] = ", ".join(USUAL_CC),
    streams: Annotated[str, typer.Option(help="Numbers of streams, separated by commas.")] = ", ".join(
        map(str, USUAL_STREAMS)
    ),
    draws: Annotated[
        int, typer.Option(min=1, max=100, help="Tries of each of the best ways, with draws over the path's intervals.")
    ] = 5,
    folder: Annotated[
        Path | None,
        typer.Option("--out", help="Folder for recommendation.json and prediction.json; may be that of the path."),
    ] = None,
    form: Form = "table",
    force: Force = False,
) -> None:
    """Rank ways to send so much data over a path, measured (--path) or given (--rate, --rtt).

    Algorithm, streams, pacing, socket buffers, time to finish; of a path that is given also the bottleneck's queue and buffer.
    """
    size_bytes, candidates = bytes_of(size, "--size"), _ways(cc, streams)
    found = _path(path, rate, rtt, buffer, loss)
    is_own = folder is not None and path is not None and folder.resolve() == path.resolve().parent
    if folder is not None and not is_own:
        check_new(folder, force=force)
    plan = effort(found, size_bytes, candidates, draws)
    if form == "table":
        about = (
            f"{plan.simulations} simulations of {plan.duration_s:.3g} s each, about {roughly(plan.core_s)} of a core"
        )
        rounds = f"{len(plan.in_rounds & {*plan.ways})} ways round trip by round trip"
        out.message("; ".join([about] * bool(plan.simulations) + [rounds] * bool(plan.in_rounds)))
    with progress_bar(f"{len(plan.ways)} ways") as progress:
        advice = rank(found, size_bytes, candidates, draws=draws, planned=path is None, progress=progress)
    if folder is not None:
        if is_own:
            _write(folder, advice)
        else:
            with new_folder(folder, force=force) as place:
                if path is None:
                    scenario.write(place, found)
                else:
                    (place / scenario.FILE).write_bytes(path.read_bytes())
                    found.write(place)
                _write(place, advice)
    _show(advice, size, form)
    if folder is not None and form == "table":
        out.message(f"results in {folder}; `elephan report {folder}` shows them, and a transfer beside them")


def _show(advice: Advice, size: str, form: Form) -> None:
    document, best = to_dict(advice), advice.ways[0]
    tables = [of_ways(document["ways"], f"{size} over the path of {advice.path.source}", ORDER)]
    if advice.bottlenecks:
        tables.append(of_bottlenecks(document["bottlenecks"], best.way.name))
    show(tables, form, document)
    if form != "table":
        return
    for note in advice.notes:
        out.message(f"note: {note}")
    out.strong(f"best: {best.way.name}: {span(best.finish_s)}", f"; {advice.command()}")
    memory = f"{best.buffer_bytes / 1e6:.4g} MB for each stream at both ends"
    out.message(f"socket buffers: {memory} (net.ipv4.tcp_wmem, net.ipv4.tcp_rmem)")
    for queue in advice.bottlenecks[:1]:
        held = f"{100 * queue.buffer:g} % of the bandwidth-delay product, {queue.buffer_bytes / 1e6:.4g} MB"
        out.message(f"bottleneck: {queue.queue}, {held}")


def _ways(cc: str, streams: str) -> list[Way]:
    """The ways that the options ask for."""
    counts = words(streams)
    if not all(word.isdecimal() and 1 <= int(word) <= 256 for word in counts) or not counts:
        raise _core.ScenarioError(f"--streams: expected numbers from 1 to 256, separated by commas, found {streams!r}")
    names = words(cc)
    if not names:
        raise _core.ScenarioError(f"--cc: expected algorithms separated by commas, found {cc!r}")
    with given_as({"flow.cc": "--cc"}):
        dumbbell(rate="10 Mbit/s", rtt="100 ms", duration="1 s", flows=[flow(name) for name in names])
    return ways(names, sorted({int(word) for word in counts}))


def _path(path: Path | None, rate: str | None, rtt: str | None, buffer: str | None, loss: float | None) -> Estimates:
    """The path that the options give."""
    values = {"--rate": rate, "--rtt": rtt, "--buffer": buffer, "--loss": loss}
    given = [option for option, value in values.items() if value is not None]
    if path is not None:
        if given:
            raise _core.ScenarioError(f"{given[0]}: expected none with --path, found {values[given[0]]!r}")
        return read_path(path)[0]
    if rate is None or rtt is None:
        found = f"only {', '.join(given)}" if given else "neither"
        raise _core.ScenarioError(f"--path: expected the scenario of a path, or --rate and --rtt; found {found}")
    bit_s, seconds = rate_of(rate, "--rate", least_bit_s=1e3), seconds_of(rtt, "--rtt", least_s=1e-6)
    with given_as({"buffer": "--buffer"}):
        return of_values(bit_s, seconds, buffer or BUFFER, loss or 0.0)


def _write(place: Path, advice: Advice) -> None:
    with new_file(place / DOCUMENT) as file:
        write_json(file, to_dict(advice))
    with new_file(place / predict.FILE) as file:
        advice.prediction.write(file)
