"""Comparison of the simulator and a kernel on the same scenario: a kernel in virtual time, or the running one."""

import itertools
import math
import statistics
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from elephan import _core
from elephan.api.metrics import Metric, declared
from elephan.api.pictures.draw import figure
from elephan.api.pictures.samples import describe
from elephan.api.registry import algorithms, linux_algorithms
from elephan.api.run import Run, write_json
from elephan.api.scenario import Scenario
from elephan.base.cores import core_count
from elephan.base.kinds import DIFFERENCE
from elephan.base.plots import Figure, save_beside
from elephan.base.table import Head, Table, text_heads
from elephan.engines.run import run
from elephan.foreign import modules as source
from elephan.kernel.loader import algorithms as files
from elephan.kernel.names import LINUX

# How often a run on the running kernel is carried out until it is valid.
ATTEMPTS = 3
# The simulator's names of algorithms that Linux calls otherwise. Linux's bbr is version 1, which it does not have.
RENAMED: dict[str, str | None] = {"highspeed": "hstcp", "bbr": None}
# The tables of a scenario that name an algorithm.
TRAFFIC = {"flow", "web", "arrivals"}


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


def resent(run: Run) -> float | None:
    """Segments retransmitted for each reduction of a window, within the measuring window; none without reductions."""
    summary, frame = run.summary, run.flows
    within = frame.filter((frame["time_s"] >= summary.from_s) & (frame["time_s"] <= summary.to_s))
    sums = {"retransmits": 0, "congestion_events": 0}
    for which in range(len(summary.flows)):
        flow = within.filter(within["flow"] == which).sort("time_s")
        for column in sums:
            counts = flow[column].to_list()
            sums[column] += counts[-1] - counts[0] if counts else 0
    return sums["retransmits"] / sums["congestion_events"] if sums["congestion_events"] else None


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
RESENT = Metric("resent", "segments per reduction", digits=1, reading=resent)
QUANTITIES = (GOODPUT, WINDOW, EPOCH, RESENT, _of_flows("srtt_mean_s"), _of_all("loss_rate"), _of_all("fairness"))
# How close the two are meant to be, as shares.
AIMS = {GOODPUT: 0.02, WINDOW: 0.05, EPOCH: 0.10, RESENT: 0.25}


@dataclass(frozen=True)
class Pair:
    """A scenario on both engines: one simulation, and one or more runs on a kernel, of which the median is used.

    `engine` is that of the kernel: `kernel` or `linux`. There is a simulation of an algorithm that only Linux has if a
    source of Linux is imported (`elephan cc import`). An invalid run is used only if there is no valid one.
    """

    name: str
    engine: str
    sim: Run | None
    kernel: tuple[Run, ...]

    @property
    def counted(self) -> list[Run]:
        """The runs on the kernel that are used."""
        return [run for run in self.kernel if not _reasons(run)] or list(self.kernel)

    @property
    def validity(self) -> str:
        """Whether the runs that are used are valid, and why the others are not."""
        wrong = [reason for run in self.kernel for reason in _reasons(run)]
        if len(self.counted) < len(self.kernel):
            return f"yes, after {len(self.kernel) - len(self.counted)} invalid: {wrong[0]}"
        return "; ".join(wrong) or "yes"

    def values(self, quantity: Metric) -> tuple[float | None, float | None]:
        """The quantity on the simulator, and on the kernel."""
        there = [value for value in map(quantity.read, self.counted) if value is not None and math.isfinite(value)]
        return quantity.read(self.sim) if self.sim else None, statistics.median(there) if there else None

    def apart(self, quantity: Metric) -> float | None:
        """By how much the simulator's value exceeds the kernel's, as a share of the kernel's."""
        sim, kernel = self.values(quantity)
        return None if not kernel or sim is None else sim / kernel - 1

    def plot(self) -> Figure:
        """Plot the windows over time: the simulator's above, the kernel's below."""
        runs = [("simulator", self.sim)] if self.sim else []
        runs.append(("kernel", self.counted[0]))
        return figure([(title, run.picture("cwnd")) for title, run in runs], describe(self.counted[0]))

    def draw(self, folder: Path) -> None:
        """Plot the windows of both into the folder of this pair. A failed plot is reported in one line on standard error."""
        save_beside(folder, {"cwnd": self.plot})

    def write_into(self, place: Path) -> None:
        """Write the results of all runs and the differences into `place`, which exists."""
        runs = {"sim": self.sim} if self.sim else {}
        several = len(self.kernel) > 1
        runs |= {f"{self.engine}-{n}" if several else self.engine: made for n, made in enumerate(self.kernel, 1)}
        for name, made in runs.items():
            inner = place / name
            inner.mkdir()
            made.write_into(inner)
        values = {q.name: dict(zip(("sim", self.engine), self.values(q), strict=True)) for q in QUANTITIES}
        write_json(place / DIFFERENCE.document, {"elephan": _core.__version__, "quantities": values})


def pairs(
    scenarios: Mapping[str, Scenario], *, engine: str = "kernel", repeat: int = 1, large: bool = False
) -> Iterator[Pair]:
    """Run each scenario, given by its name, on the simulator and on the engine `kernel` or `linux`; in the same order.

    With `kernel` the runs are carried out side by side on all cores. With `linux` they are carried out in sequence, `repeat` of
    each scenario; one that the machine disturbed is repeated, up to `ATTEMPTS` times. Raises as `run` does.
    """
    todo = [
        (name, on_simulator(scenario, large=large), scenario.with_settings({"engine": engine}, large=large))
        for name, scenario in scenarios.items()
    ]
    if engine == "linux":
        for name, simulated, real in todo:
            yield Pair(name, engine, run(simulated) if simulated else None, tuple(_valid(real, repeat)))
        return
    cancel = _core.Cancel()
    with ThreadPoolExecutor(core_count()) as pool:

        def start(scenario: Scenario) -> Future[Run]:
            return pool.submit(run, scenario, cancel=cancel)

        try:
            started = [(name, start(simulated) if simulated else None, start(real)) for name, simulated, real in todo]
            while started:
                name, sim, kernel = started.pop(0)
                yield Pair(name, engine, sim.result() if sim else None, (kernel.result(),))
        finally:
            cancel.set()
            pool.shutdown(cancel_futures=True)


def _valid(scenario: Scenario, repeat: int) -> Iterator[Run]:
    """Runs on the running kernel: so many valid ones, where the machine allows it, and the invalid ones before them."""
    for _ in range(repeat):
        for _ in range(ATTEMPTS):
            made = run(scenario)
            yield made
            if not _reasons(made):
                break


def on_simulator(scenario: Scenario, *, large: bool) -> Scenario | None:
    """The scenario with the simulator's algorithms of the same rules, those of a sweep too; none if it lacks one of them."""
    document = {key: value for key, value in scenario.document.items() if key != "kernel"}
    for key in (TRAFFIC | {"sweep"}) & document.keys():
        document[key] = _with_rules(document[key])
        if _lacks_rule(document[key]):
            return None
    return Scenario({**document, "engine": "sim"}).with_settings({}, large=large)


def _with_rules(part: Any, key: str = "") -> Any:
    """A part of a scenario with the simulator's algorithm, or None, at each key that gives one: `cc`, `flow.cc`, ..."""
    if key == "cc" or key.endswith(".cc"):
        return [_same_rule(one) for one in part] if isinstance(part, list) else _same_rule(part)
    if isinstance(part, dict):
        return {inner: _with_rules(value, inner) for inner, value in part.items()}
    return [_with_rules(one) for one in part] if isinstance(part, list) else part


def _lacks_rule(part: Any) -> bool:
    """Whether `_with_rules` has left a None."""
    inner = part.values() if isinstance(part, dict) else part if isinstance(part, list) else ()
    return part is None or any(_lacks_rule(one) for one in inner)


def _same_rule(cc: Any) -> Any:
    """The simulator's algorithm of the same rule as the `cc` of a scenario for a kernel; None if it has none.

    Where a kernel runs Linux's own file, that is the form of Linux, if the algorithm has one. Otherwise it is the module of an
    imported source, for a name with `linux:` or an algorithm that only Linux has.
    """
    own = {entry.name: entry for entry in algorithms()}
    linux = {entry.name.removeprefix(LINUX) for entry in linux_algorithms()}
    if not isinstance(cc, str) or cc in files() or (plain := cc.removeprefix(LINUX)) not in linux:
        return cc
    name, tree = RENAMED.get(plain, plain), source.current()
    if name in own and any(parameter.name == "form" for parameter in own[name].parameters):
        return {"name": name, "form": "linux"}
    if (cc.startswith(LINUX) or name not in own) and tree is not None and plain in tree.modules():
        return f"{LINUX}{plain}"
    return name if name in own else None


def records(pairs: Sequence[Pair]) -> list[dict[str, Any]]:
    """For programs: of each pair and quantity, both values, and how far the simulator's is from the kernel's, as a share."""
    found = []
    for one in pairs:
        for quantity in QUANTITIES:
            sim, kernel = one.values(quantity)
            apart = one.apart(quantity)
            found.append(
                {
                    "scenario": one.name,
                    "quantity": quantity.name,
                    "unit": quantity.unit,
                    "simulator": sim,
                    "kernel": kernel,
                    "apart": apart,
                    "valid": one.validity,
                }
            )
    return found


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
                text += f" ({100 * apart:+.1f} %{'!' if abs(apart) > AIMS[quantity] else ''})"
            row.append(text)
        rows.append([*row, one.validity])
    aims = {quantity: f", aim {100 * aim:.0f} %" for quantity, aim in AIMS.items()}
    heads = [Head(one.name, one.unit + aims.get(one, "")) for one in QUANTITIES]
    title = "simulator / kernel (difference; ! beyond the aim)"
    return Table(title, [*text_heads("scenario"), *heads, *text_heads("valid")], rows)
