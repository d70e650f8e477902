"""The commands `elephan model ...`: analytical models."""

import math
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from elephan import _core
from elephan.api.registry import algorithms
from elephan.api.run import Run
from elephan.api.scenario import Scenario
from elephan.base import plots
from elephan.base.errors import given_as
from elephan.base.numbers import significant
from elephan.base.table import Cell, Head, Table, text_heads
from elephan.cli import complete
from elephan.cli.entries import table_of, table_of_names
from elephan.cli.options import assignments, command_line, parameter, rate_of, seconds_of, words
from elephan.cli.output import Form, out, show
from elephan.cli.progress import announce, progress_bar
from elephan.cli.rank import rank
from elephan.engines.run import run_many
from elephan.studies import theory
from elephan.studies.theory import FIGURES, MODELLED, Model, plot_response

app = command_line(group=True)
plot_app = command_line(group=True, help="Plot theoretical figures with simulated points.")
app.add_typer(plot_app, name="plot")
app.command("rank")(rank)

EVERY = ", ".join(MODELLED)
# Above this loss rate HighSpeed TCP is Standard TCP (RFC 3649: Low_P).
HSTCP_LOW_P = 1e-3
CcOption = Annotated[
    str,
    typer.Option(
        "--cc",
        help=f"Algorithms, separated by commas: {', '.join(MODELLED)}.",
        autocompletion=complete.list_of(lambda: MODELLED),
    ),
]
RttOption = Annotated[str, typer.Option(help="Round-trip time.")]
SetOption = Annotated[list[str] | None, typer.Option("--set", help="Set a parameter of one algorithm: KEY=VALUE.")]
PacketOption = Annotated[int, typer.Option("--packet", min=41, help="Size of an IP packet in bytes.")]


def _models(cc: str, settings: list[str] | None) -> dict[str, Model]:
    names = words(cc)
    values = {key: parameter(text) for key, text in assignments(settings).items()}
    if values and len(names) != 1:
        raise _core.ScenarioError(f"--set: expected a single algorithm, found {len(names)}")
    if not names:
        raise _core.ScenarioError(f"--cc: expected algorithms separated by commas, found {cc!r}")
    with given_as({"cc": "--cc"}):
        return {name: Model({"name": name, **values}) for name in names}


Limits = Callable[[float], bool]
# The allowed values of options, and how a message describes them.
SHARE: tuple[str, Limits] = ("a share between 0 and 1", lambda x: 0 < x < 1)
POSITIVE: tuple[str, Limits] = ("a number above 0", lambda x: x > 0)
FROM_0: tuple[str, Limits] = ("0 or more", lambda x: x >= 0)
SEGMENTS: tuple[str, Limits] = ("a segment or more", lambda x: x >= 1)


def _within(value: float, option: str, expected: tuple[str, Limits]) -> float:
    what, fits = expected
    if not (math.isfinite(value) and fits(value)):
        raise _core.ScenarioError(f"{option}: expected {what}, found {value:g}")
    return value


def _numbers(text: str, option: str, expected: tuple[str, Limits]) -> list[float]:
    try:
        values = [float(part) for part in text.split(",")]
    except ValueError as error:
        raise _core.ScenarioError(f"{option}: expected numbers separated by commas, found {text!r}") from error
    return [_within(value, option, expected) for value in values]


def _packets_s(text: str, packet: int) -> float:
    return rate_of(text, "--rate") / (8 * packet)


def _window(text: str, packet: int, rtt_s: float) -> float:
    """The window that carries a rate."""
    window = _packets_s(text, packet) * rtt_s
    if window < 1:
        raise _core.ScenarioError(f'--rate: expected at least one segment in each round trip, found "{text}"')
    return window


@app.command("list")
def list_(form: Form = "table") -> None:
    """List the algorithms that have a response function, and the figures of `elephan model plot response`."""
    known = [entry for entry in algorithms() if entry.name in MODELLED]
    figures = table_of_names("figures (--figure)", {name: figure.title for name, figure in FIGURES.items()})
    show([table_of("algorithms (--cc)", known), figures], form)


@app.command()
def response(
    cc: CcOption = EVERY,
    loss: Annotated[str | None, typer.Option(help="Loss rates, separated by commas.")] = None,
    rate: Annotated[str | None, typer.Option(help="Throughput; print the loss rate that permits it.")] = None,
    rtt: RttOption = "100 ms",
    packet: PacketOption = 1500,
    settings: SetOption = None,
    form: Form = "table",
) -> None:
    """Compute the mean window and rate of an algorithm at a loss rate, or the loss rate for a throughput."""
    if (loss is None) == (rate is None):
        raise _core.ScenarioError(f"--loss: expected this or --rate, found {'neither' if loss is None else 'both'}")
    seconds, models = seconds_of(rtt, "--rtt"), _models(cc, settings)
    window = None if rate is None else _window(rate, packet, seconds)
    given = [] if loss is None else _numbers(loss, "--loss", SHARE)
    rows: list[list[Cell]] = []
    for name, model in models.items():
        losses = given if window is None else [model.core.loss(window, seconds)]
        for p in losses:
            r = model.response(p, seconds, packet)
            rows.append([name, p, r.published, r.window, model.independent(p, seconds), r.peak, r.rate_bit_s / 1e6])
    heads = [
        *text_heads("cc"),
        Head("loss rate"),
        Head("mean window as published"),
        Head("mean window of the sawtooth"),
        Head("mean window, independent losses"),
        Head("window at a loss"),
        Head("rate", "Mbit/s"),
    ]
    title = f"response at {rtt}; windows in segments, rate of IP packets of {packet} bytes"
    high_speed = [p for p in given if p < HSTCP_LOW_P and "hstcp" in models and not settings]
    show([Table(title, heads, rows, _rounded(high_speed) if high_speed else "")], form)


def _rounded(losses: Sequence[float]) -> str:
    windows = ", ".join(f"{significant(0.12 / loss**0.835)} at {loss:g}" for loss in losses)
    return (
        "hstcp as published: the line through the points that RFC 3649 gives, 38 segments at 1e-3 and 83,000 at 1e-7; the "
        f"RFC's table has 0.12/p^0.835, the same with rounded constants: {windows}"
    )


@app.command()
def recovery(
    cc: CcOption = EVERY,
    window: Annotated[str | None, typer.Option(help="Windows in segments, separated by commas.")] = None,
    rate: Annotated[str | None, typer.Option(help="Rates, separated by commas, instead of windows.")] = None,
    rtt: RttOption = "200 ms",
    packet: PacketOption = 1500,
    settings: SetOption = None,
    form: Form = "table",
) -> None:
    """Compute the effect of one loss: time to recover, to double and to halve, variation of the rate, supporting loss rate."""
    if (window is None) == (rate is None):
        raise _core.ScenarioError(f"--window: expected this or --rate, found {'neither' if window is None else 'both'}")
    seconds = seconds_of(rtt, "--rtt")
    if rate is not None:
        windows = [_window(part.strip(), packet, seconds) for part in rate.split(",")]
    else:
        windows = _numbers(window or "", "--window", SEGMENTS)
    rows: list[list[Cell]] = []
    for name, core in ((name, model.core) for name, model in _models(cc, settings).items()):
        for w in windows:
            loss, trips = core.loss(w, seconds), core.recovery(w, seconds)
            varies = core.variation(w, seconds), core.sawtooth_variation(w)
            times = trips, trips * seconds, core.doubling(w, seconds), core.halving(w)
            rows.append([name, w, *times, *varies, loss])
    heads = [
        *text_heads("cc"),
        Head("window", "segments"),
        Head("recovery", "round trips"),
        Head("recovery", "s"),
        Head("doubling", "round trips"),
        Head("halving", "round trips"),
        Head("CoV, random losses"),
        Head("CoV, one sawtooth"),
        Head("supporting loss rate"),
    ]
    show([Table(f"one loss at {rtt}", heads, rows)], form)


@app.command()
def fairness(
    cc: CcOption = EVERY,
    loss: Annotated[float, typer.Option(help="Loss rate.")] = 1e-5,
    rtt: RttOption = "100 ms",
    settings: SetOption = None,
    form: Form = "table",
) -> None:
    """Compute RTT unfairness: the exponent n of rate_1/rate_2 = (rtt_2/rtt_1)^n."""
    seconds = seconds_of(rtt, "--rtt")
    _within(loss, "--loss", SHARE)
    rows: list[list[Cell]] = [
        [name, *model.core.rtt_unfairness(loss, seconds)] for name, model in _models(cc, settings).items()
    ]
    heads = [
        *text_heads("cc"),
        *(Head(text) for text in ("d of w = c T^e/p^d", "e", "n, independent losses", "n, losses together")),
    ]
    title = f"unfairness by round-trip time, about {rtt} and loss rate {loss:g}"
    show([Table(title, heads, rows)], form)


@app.command()
def utilisation(
    beta: Annotated[
        str, typer.Option(help="Remaining fractions of the window after a loss, separated by commas.")
    ] = "0.5,0.8,0.875",
    buffer: Annotated[
        str, typer.Option(help="Buffers in bandwidth-delay products, separated by commas.")
    ] = "0,0.05,0.1,0.2,0.5,1",
    form: Form = "table",
) -> None:
    """Compute the utilisation of a link by a single flow for buffer sizes (thesis, equation 5.6)."""
    gammas = _numbers(buffer, "--buffer", FROM_0)
    rows: list[list[Cell]] = [
        [f"{b:g}", *(_core.utilisation_of(b, g) for g in gammas)] for b in _numbers(beta, "--beta", SHARE)
    ]
    heads = [*text_heads("beta"), *(Head(f"buffer {g:g}") for g in gammas)]
    show([Table("utilisation", heads, rows)], form)


@app.command()
def stability(
    rate: Annotated[str, typer.Option(help="Rate of the link.")] = "1 Gbit/s",
    rtt: RttOption = "100 ms",
    flows: Annotated[float, typer.Option(min=1, help="Number of Scalable TCP flows.")] = 100,
    buffer: Annotated[str, typer.Option(help="Buffers in packets, separated by commas.")] = "50,100,200,500",
    queue: Annotated[str, typer.Option(help="Loss model: power (load^buffer), mm1b or excess.")] = "power",
    a: Annotated[float, typer.Option(help="Scalable TCP's increase.")] = 0.01,
    b: Annotated[float, typer.Option(help="Scalable TCP's decrease.")] = 0.125,
    packet: PacketOption = 1500,
    form: Form = "table",
) -> None:
    """Check local stability of Scalable TCP on a link: a < p/(y p'(y)) (Kelly 2003, equation 3). Sufficient, not necessary."""
    seconds, packets_s = seconds_of(rtt, "--rtt"), _packets_s(rate, packet)
    for value, option, expected in ((a, "--a", POSITIVE), (b, "--b", SHARE), (flows, "--flows", POSITIVE)):
        _within(value, option, expected)
    rows: list[list[Cell]] = []
    for size in _numbers(buffer, "--buffer", POSITIVE):
        load, loss, limit, stable = _core.scalable_stability(a, b, flows, seconds, packets_s, size, queue)
        rows.append([f"{size:g}", load, loss, limit, "stable" if stable else "not assured"])
    heads = [
        Head("buffer", "packets", numeric=False),
        *(Head(text) for text in ("load", "loss rate", "a must be less than", f"a = {a:g}")),
    ]
    show([Table(f"{flows:g} flows, {rate}, {rtt}, loss by {queue}", heads, rows)], form)


@app.command()
def agreement(
    cc: CcOption = "reno, hstcp, scalable, htcp, bic, ltcp, cubic",
    flows: Annotated[int, typer.Option(min=1, help="Number of flows.")] = 100,
    rate: Annotated[str, typer.Option(help="Rate of the link.")] = "1 Gbit/s",
    rtts: Annotated[
        str, typer.Option(help="Round-trip times, separated by commas; each has an equal share of the flows.")
    ] = "50 ms",
    buffer: Annotated[str, typer.Option(help="Buffer of the link.")] = "100% bdp",
    queue: Annotated[
        str, typer.Option(help="droptail, or red with thresholds of 100 and 600 packets and max_p 0.02.")
    ] = "red",
    duration: Annotated[str, typer.Option(help="Duration; metrics cover the second half.")] = "80 s",
    form: Form = "table",
) -> None:
    """Compare the fluid model with the packet simulator: the same scenario on both engines."""
    red = {"name": "red", "min_th": 100, "max_th": 600, "max_p": 0.02, "ecn": False}
    if queue not in ("red", "droptail"):
        raise _core.ScenarioError(f"--queue: expected red or droptail, found {queue!r}")
    paths = words(rtts)
    if flows < len(paths):
        raise _core.ScenarioError(
            f"--flows: expected at least one for each of {len(paths)} round-trip times, found {flows}"
        )
    for text, option in ((duration, "--duration"), *((t, "--rtts") for t in paths)):
        seconds_of(text, option)
    found = theory.agreement(
        words(cc), flows=flows, rate=rate, rtts=paths, buffer=buffer,
        queue=red if queue == "red" else queue, duration=duration, run=partial(_run, "both engines"),
    )  # fmt: skip
    rows: list[list[Cell]] = [
        [name, what, simulated, model, 100 * (model / simulated - 1) if simulated else None]
        for name, what, simulated, model in found
    ]
    heads = [*text_heads("cc", "quantity"), Head("simulated"), Head("model"), Head("deviation", "%")]
    show([Table(f"{flows} flows, {rate}, {rtts}, buffer {buffer}, {queue}", heads, rows)], form)


def _run(what: str, scenarios: Sequence[Scenario]) -> list[Run]:
    announce(scenarios)
    with progress_bar(what) as progress:
        return run_many(scenarios, progress=progress)


@plot_app.command("response")
def plot(
    figure: Annotated[
        str, typer.Option(help=f"One of {', '.join(FIGURES)}; li-9.1 selects both of its parts.")
    ] = "li-8.1",
    cc: Annotated[str | None, typer.Option("--cc", help="Algorithms.", show_default="the figure's")] = None,
    points: Annotated[int, typer.Option(min=0, help="Number of simulated points for each algorithm; 0 for none.")] = 7,
    most: Annotated[str, typer.Option(help="Maximum simulated time for a point.")] = "200 s",
    out_file: Annotated[
        Path | None, typer.Option("--out", help="Output file.", show_default="results/response-FIGURE.png")
    ] = None,
) -> None:
    """Plot published response functions (Kelly's figure 3, the thesis' 8.1 and 9.1) with simulated points on the curves.

    The points of a figure take about 20 s of processor time, those of li-9.1 40 s; --most 50s takes a quarter of that.
    """
    parts = [key for key in FIGURES if key == figure or key.startswith(f"{figure}-")]
    if not parts:
        raise _core.ScenarioError(f"--figure: expected one of {', '.join(FIGURES)}, found {figure!r}")
    picture, most_s = out_file or Path("results", f"response-{figure}.png"), seconds_of(most, "--most")
    if out_file is not None and not picture.parent.is_dir():
        raise _core.ScenarioError(f"--out: expected a file in an existing folder, found {str(picture)!r}")
    plots.check_format(picture)
    picture.parent.mkdir(exist_ok=True)
    for key in parts:
        names = words(cc) or list(FIGURES[key].cc)
        place = picture.with_stem(picture.stem + key.removeprefix(figure))
        plots.save(
            plot_response(FIGURES[key], names, points, most_s=most_s, run=partial(_run, f"points of {key}")), place
        )
        out.print(f"{place}")
