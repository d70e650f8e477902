"""A measured path as a report: estimates, the recommendation, and a transfer beside its prediction."""

from pathlib import Path

import numpy as np

from elephan import _core
from elephan.api.pictures.data import Chart, Line, Numbers
from elephan.api.run import Run
from elephan.base.documents import inside, read_json
from elephan.base.kinds import RUN
from elephan.paths import estimates, fit, predict, scenario, tables
from elephan.paths.series import observe_results
from elephan.report.content import Content, Group, Tile

RECOMMENDATION, TRANSFER = "recommendation.json", "transfer"
MEANINGS = {
    "goodput_bit_s": "Application bytes that arrived, all streams together.",
    "rtt_s": "Mean of the streams' smoothed round-trip times.",
    "window_bytes": "Congestion windows, or data in flight, all streams together.",
}


def read(folder: Path) -> Content:
    """The report of a folder that `path fit`, `path probe` or `path recommend` made, with `transfer/` if it is there."""
    found = estimates.read(folder)
    text = inside(folder, scenario.FILE).read_text(encoding="utf-8")
    prediction = predict.read(folder) if inside(folder, predict.FILE).is_file() else None
    advice = read_json(folder, RECOMMENDATION) if inside(folder, RECOMMENDATION).is_file() else None
    measured, what, window_is = _measured(folder)
    notes = list(found.notes)
    hosts = [(host, ", ".join(f"{key} {value}" for key, value in host.facts.items())) for host in found.hosts]
    shown = [tables.of_estimates(found.values(), found.source)]
    if found.goodput_bit_s:
        shown.append(tables.of_estimates(found.goodput_bit_s, f"{found.source}: goodput of tests, by algorithm"))
    if advice is not None:
        shown.append(tables.of_ways(advice["ways"], "Ways to send"))
        notes += [str(note) for note in advice["notes"] if note not in notes]
    tiles = [_tile(key, value) for key, value in found.values().items() if key in TILES]
    groups = []
    if prediction is not None:
        if measured is not None:
            last = float(measured["time_s"][-1]) if len(measured["time_s"]) else 0.0
            prediction, extended = predict.extended(prediction, last)
            notes += [extended] if extended else []
            if window_is != prediction.window_is:
                measured = {**measured, "window_bytes": np.full(len(measured["time_s"]), np.nan)}
            parts = predict.partings(prediction, measured)
            shown.insert(1, tables.of_partings(parts))
            notes += [f"{part.text}." for part in parts]
        groups.append(
            Group(f"Predicted{' and measured' if measured is not None else ''}", _charts(prediction, measured))
        )
        tiles += _finish(folder, prediction)
    return Content(
        kind="path",
        title=f"Path of {found.source}",
        subtitle=f"estimated by elephan {found.made_by}" + (f"; beside it {what}" if what else ""),
        facts=[
            ("estimates", f"{found.source}, by elephan {found.made_by}"),
            *((host.role, f"{host.name} {facts}".strip()) for host, facts in hosts),
            ("report written by", f"Elephan {_core.__version__}"),
        ],
        command=str(advice["command"]) if advice is not None else "",
        scenario=text,
        tiles=tiles,
        tables=shown,
        groups=groups,
        notes=notes,
    )


TILES = {
    "rate_bit_s": "Rate of the bottleneck, counting IP packets.",
    "base_rtt_s": "Round-trip time without queueing and serialisation.",
    "buffer_bytes": "What the bottleneck's queue holds.",
    "loss": "Share of packets lost for other reasons than a full queue.",
}


def _tile(key: str, value: estimates.Value) -> Tile:
    unit, factor = value.shown_in
    shown = value.value if value.value is not None else value.best
    sign = "" if value.value is not None or shown is None else "≥ " if shown == value.low else "≤ "
    text = "-" if shown is None else f"{sign}{shown * factor:.4g}"
    return Tile(tables.name_of(key), text, unit, f"{TILES[key]} {value.text}.")


def _measured(folder: Path) -> tuple[dict[str, Numbers] | None, str, str]:
    """The measured series: of the transfer, or otherwise those from which the path was fitted; what they are; their window."""
    if inside(folder, f"{TRANSFER}/{RUN.document}").is_file():
        seen = observe_results(inside(folder, TRANSFER))
        return seen.series(predict.POINTS), "a transfer", seen.window_is
    if inside(folder, fit.MEASURED).is_file():
        stored = read_json(folder, fit.MEASURED)
        keys = ("time_s", *predict.QUANTITIES)
        return (
            {key: np.array(stored[key], float) for key in keys},
            "the transfer that it was fitted to",
            str(stored["window_is"]),
        )
    return None, "", "cwnd"


def _charts(prediction: predict.Prediction, measured: dict[str, Numbers] | None) -> list[Chart]:
    times = np.array(prediction.time_s)
    grid = times if measured is None else np.union1d(times, measured["time_s"])

    def on_grid(at: Numbers, values: Numbers) -> Numbers:
        return np.asarray(np.interp(grid, at, values, left=np.nan, right=np.nan), float)

    charts = []
    for key, (name, unit, factor) in predict.QUANTITIES.items():
        band: predict.Band = getattr(prediction, key)
        lines = [
            Line(f"predicted, {prediction.cc}", on_grid(times, np.array(band.middle, float)) * factor, 0),
            Line("lowest draw", on_grid(times, np.array(band.low, float)) * factor, 0, minor=True),
            Line("highest draw", on_grid(times, np.array(band.high, float)) * factor, 0, minor=True),
        ]
        if measured is not None:
            lines.append(Line("measured", on_grid(measured["time_s"], measured[key]) * factor, 1))
        end_s = float(grid[-1]) if len(grid) else 0.0
        charts.append(Chart(key, name, unit, MEANINGS[key], grid, lines, until_s=end_s))
    return charts


def _finish(folder: Path, prediction: predict.Prediction) -> list[Tile]:
    """The predicted time to finish, and how long a transfer of this size took."""
    if prediction.finish_s is None:
        return []
    # A tile is narrow: the interval stands below the number.
    expected, _, interval = tables.span(prediction.finish_s).partition(" (")
    tiles = [Tile("time to finish, predicted", expected, interval.rstrip(")"), "Of the best way; 95 % interval.")]
    if inside(folder, f"{TRANSFER}/{RUN.document}").is_file():
        run = Run.load(inside(folder, TRANSFER))
        moved = run.table("transfers")
        ends = moved["end_s"].to_numpy() if moved.num_rows else np.array([])
        if len(ends) and np.isfinite(ends).all():
            took = float(ends.max() - moved["start_s"].to_numpy().min())
            amount = float(moved["bytes"].to_numpy().sum())
            size = prediction.size_bytes or amount
            same = (
                ""
                if abs(amount - size) < 0.05 * size
                else f" It carried {amount:.4g} B, and {size:.4g} B were predicted."
            )
            shown = tables.span(estimates.Value(unit="s", value=took), prediction.finish_s)
            tiles.append(Tile("time to finish, measured", shown, "", f"Of the transfer.{same}"))
    return tiles
