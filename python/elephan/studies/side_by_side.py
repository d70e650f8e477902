"""Comparison of the simulator and the running kernel on the same scenario."""

import itertools
import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import matplotlib as mpl
from matplotlib.figure import Figure

from elephan import _core
from elephan.api.charts import CHARTS
from elephan.api.metrics import Metric, declared
from elephan.api.run import Run, write_json
from elephan.api.scenario import Scenario
from elephan.base.folders import new_folder
from elephan.base.plots import STYLE, Line, draw_lines, save_beside
from elephan.base.table import Head, Table, text_heads
from elephan.base.text import drawn
from elephan.engines import linux
from elephan.engines.run import run as simulate

# How often a run on the kernel is carried out until it is valid.
ATTEMPTS = 3


def epoch_s(run: Run) -> float | None:
    """Mean time between two reductions of a flow's window within the measuring window, s; none where there are fewer than two.

    Reductions within one round-trip time count as one.
    """
    summary, frame = run.summary, run.flows
    lengths = []
    for which in range(len(summary.flows)):
        flow = frame.filter(frame["flow"] == which).sort("time_s")
        flow = flow.filter((flow["time_s"] >= summary.from_s) & (flow["time_s"] <= summary.to_s))
        times = flow["time_s"].to_list()
        counts = flow["congestion_events"].to_list()
        moments = [times[i] for i in range(1, len(times)) if counts[i] > counts[i - 1]]
        if len(moments) >= 2:
            lengths += [b - a for a, b in itertools.pairwise(moments)]
    return statistics.fmean(lengths) if lengths else None


def _mean(values: Sequence[float | None]) -> float | None:
    there = [value for value in values if value is not None]
    return statistics.fmean(there) if there else None


def _reasons(run: Run) -> list[str]:
    """The reasons why a run on the kernel is invalid."""
    return list(run.provenance["quality"]["invalid_because"])


def _of_flows(column: str) -> Metric:
    """The mean of a metric over flows."""
    return declared("FlowSummary", column, reading=lambda run: _mean([getattr(f, column) for f in run.summary.flows]))


def _of_all(column: str) -> Metric:
    """A metric of the whole run."""
    return declared("Summary", column, reading=lambda run: getattr(run.summary, column))


# What is compared of a scenario on both engines.
GOODPUT = replace(_of_all("goodput_bit_s"), unit="Mbit/s", digits=2)
WINDOW = _of_flows("cwnd_mean_segments")
EPOCH = Metric("epoch", "s", reading=epoch_s)
QUANTITIES = (GOODPUT, WINDOW, EPOCH, _of_flows("srtt_mean_s"), _of_all("loss_rate"), _of_all("fairness"))
# How close the two are meant to be, as shares.
AIMS = {GOODPUT: 0.03, WINDOW: 0.10, EPOCH: 0.15}


@dataclass(frozen=True)
class Pair:
    """A scenario on both engines: one simulation, and one or more runs on the kernel, of which the median is used.

    An invalid run is used only if there is no valid one.
    """

    name: str
    sim: Run
    linux: tuple[Run, ...]

    @property
    def counted(self) -> list[Run]:
        """The runs on the kernel that are used."""
        return [run for run in self.linux if not _reasons(run)] or list(self.linux)

    @property
    def validity(self) -> str:
        """Whether the runs that are used are valid, and why the others are not."""
        wrong = [reason for run in self.linux for reason in _reasons(run)]
        if len(self.counted) < len(self.linux):
            return f"yes, after {len(self.linux) - len(self.counted)} invalid: {wrong[0]}"
        return "; ".join(wrong) or "yes"

    def values(self, quantity: Metric) -> tuple[float | None, float | None]:
        """The quantity on the simulator, and on the kernel."""
        there = [value for value in map(quantity.read, self.counted) if value is not None and math.isfinite(value)]
        return quantity.read(self.sim), statistics.median(there) if there else None

    def apart(self, quantity: Metric) -> float | None:
        """By how much the simulator's value exceeds the kernel's, as a share of the kernel's."""
        sim, kernel = self.values(quantity)
        return None if not kernel or sim is None else sim / kernel - 1

    def plot(self) -> Figure:
        """Plot the windows over time: the simulator's above, the kernel's below."""
        with mpl.rc_context(STYLE):
            figure = Figure(figsize=(7.2, 4.6))
            axes = figure.subplots(2, 1, sharex=True, sharey=True)
            for place, run, title in zip(axes, (self.sim, self.counted[0]), ("simulator", "kernel"), strict=True):
                lines = [Line(*line) for line in run.lines("cwnd")]
                draw_lines(place, lines, CHARTS["cwnd"].label, run.summary.to_s)
                place.set_title(f"{drawn(self.name, 80)}: {title}")
            axes[1].set_xlabel("time (s)")
            if len(self.sim.labels) > 1:
                axes[0].legend()
            return figure

    def save(self, folder: str | Path, *, force: bool = False) -> Path:
        """Write the results of all runs, the figures and the differences."""
        with new_folder(folder, force=force) as place:
            self.write_into(place)
        self.draw(Path(folder))
        return Path(folder)

    def draw(self, folder: Path) -> None:
        """Plot the windows of both into the folder of this pair. A failed plot is reported in one line on standard error."""
        save_beside(folder, {"cwnd": self.plot})

    def write_into(self, place: Path) -> None:
        """Write the files of such a folder into `place`, which exists."""
        for which, run in enumerate((self.sim, *self.linux)):
            inner = place / ("sim" if which == 0 else f"linux-{which}")
            inner.mkdir()
            run.write_into(inner)
        values = {q.name: dict(zip(("sim", "linux"), self.values(q), strict=True)) for q in QUANTITIES}
        write_json(place / "difference.json", {"elephan": _core.__version__, "quantities": values})


def pair(scenario: Scenario, *, name: str | None = None, repeat: int = 1, large: bool = False) -> Pair:
    """Run a scenario on both engines, `repeat` times on the kernel. Raises as `linux.run` does.

    A run that the machine disturbed gives no information about the kernel and is repeated, up to `ATTEMPTS` times.
    """
    runs: list[Run] = []
    for _ in range(repeat):
        for _ in range(ATTEMPTS):
            runs.append(linux.run(scenario.with_settings({"engine": "linux"}, large=large)))
            if not _reasons(runs[-1]):
                break
    sim = simulate(scenario.with_settings({"engine": "sim"}, large=large))
    return Pair(name or scenario.name, sim, tuple(runs))


def table(pairs: Sequence[Pair]) -> Table:
    """A row for each pair: of each quantity, the simulator's, the kernel's, and how far the simulator's is from it.

    `!` marks what is further apart than the aim.
    """
    rows = []
    for one in pairs:
        row = [one.name]
        for quantity in QUANTITIES:
            sim, kernel = one.values(quantity)
            apart = one.apart(quantity)
            text = f"{quantity.text(sim)} / {quantity.text(kernel)}"
            if apart is not None and quantity in AIMS:
                text += f" ({100 * apart:+.0f} %{'!' if abs(apart) > AIMS[quantity] else ''})"
            row.append(text)
        rows.append([*row, one.validity])
    aims = {quantity: f", aim {100 * aim:.0f} %" for quantity, aim in AIMS.items()}
    heads = [Head(one.name, one.unit + aims.get(one, ""), numeric=False) for one in QUANTITIES]
    title = "simulator / kernel (difference; ! beyond the aim)"
    return Table(title, [*text_heads("scenario"), *heads, *text_heads("valid")], rows)
