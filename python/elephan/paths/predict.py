"""What transfers over a measured path will do: simulations of it, with draws over the intervals of its values."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from elephan._core import ScenarioError
from elephan.api.run import Run
from elephan.api.scenario import Scenario, dumbbell, flow
from elephan.base.documents import inside
from elephan.engines.run import run_many
from elephan.paths import scenario
from elephan.paths.estimates import Estimates, Value
from elephan.paths.observed import Array

FILE = "prediction.json"
POINTS, FEW = 200, 40
# A core simulates so many packets a second.
PACKETS_S = 8e5
# Measured and predicted part if they differ by more than this share beyond the band, for so long.
TOLERANCE, PARTED_S, PARTED_SHARE = 0.1, 2.0, 0.05
QUANTITIES = {
    "goodput_bit_s": ("goodput", "Mbit/s", 1e-6),
    "rtt_s": ("round-trip time", "ms", 1e3),
    "window_bytes": ("window", "kB", 1e-3),
}


class Band(msgspec.Struct, frozen=True):
    """A quantity over time: for the middle values of the path, and the range of the draws (of 95 % of them from 40 on).

    None where nothing is known.
    """

    middle: list[float | None]
    low: list[float | None]
    high: list[float | None]

    @classmethod
    def of(cls, draws: Sequence[Array]) -> "Band":
        """The band of several series on the same times; the first is that of the middle values."""
        stack = np.array(draws, float)
        some = np.isfinite(stack).any(axis=0)
        filled = np.where(np.isfinite(stack), stack, np.nan)
        low, high = np.full(stack.shape[1], np.nan), np.full(stack.shape[1], np.nan)
        # Of a few draws the range: a percentile between two of them would leave out the middle.
        if some.any():
            edges = [2.5, 97.5] if len(stack) >= FEW else [0, 100]
            low[some], high[some] = np.nanpercentile(filled[:, some], edges, axis=0)
        return cls(*(plain(one) for one in (stack[0], low, high)))


def plain(values: Array) -> list[float | None]:
    """Numbers for JSON: None for what is not finite."""
    return [float(f"{value:.6g}") if math.isfinite(value) else None for value in values]


class Prediction(msgspec.Struct, frozen=True, kw_only=True):
    """What is expected of a transfer: series over time with their bands, and the time to finish."""

    cc: str
    streams: int
    time_s: list[float]
    goodput_bit_s: Band
    rtt_s: Band
    window_bytes: Band
    draws: int
    window_is: str = "cwnd"
    size_bytes: float | None = None
    finish_s: Value | None = None
    notes: list[str] = []

    def write(self, path: Path) -> None:
        """Write it as a file."""
        path.write_bytes(msgspec.json.encode(self) + b"\n")


def read(folder: Path) -> Prediction:
    """Read `prediction.json` of a folder. Raises `ScenarioError` if it has another form, and `OSError`."""
    path = inside(folder, FILE)
    try:
        found = msgspec.json.decode(path.read_bytes(), type=Prediction)
    except (msgspec.DecodeError, RecursionError) as error:
        raise ScenarioError(f"{path}: expected a prediction as `elephan path fit` writes it, found: {error}") from error
    bands = [getattr(found, key) for key in QUANTITIES]
    lengths = {len(found.time_s), *(len(one) for band in bands for one in (band.middle, band.low, band.high))}
    if len(lengths) != 1:
        raise ScenarioError(f"{path}: expected series of one length, found {sorted(lengths)}")
    return found


def draws(found: Estimates, count: int, seed: int = 1) -> list[Estimates]:
    """The path with its middle values, and `count - 1` others drawn from the intervals.

    A value is normal on each side of its middle, with the interval as 95 %. A loss of zero is exponential with the same upper
    bound. A buffer of which only a lower bound is known is as likely anywhere from there to twice that, or to one
    bandwidth-delay product if that is more.
    """
    random = np.random.default_rng(seed)
    made = [found]
    for _ in range(count - 1):
        changed = {key: _drawn(value, random) for key, value in found.values().items() if key != "mtu_bytes"}
        buffer = found.buffer_bytes
        if buffer is not None and buffer.value is None and buffer.low:
            product = (found.rate_bit_s.best or 0.0) * (found.base_rtt_s.best or 0.0) / 8
            high = max(2 * buffer.low, product)
            changed["buffer_bytes"] = Value(unit="B", value=float(random.uniform(buffer.low, high)))
        made.append(msgspec.structs.replace(found, **changed))
    return made


def _drawn(value: Value, random: np.random.Generator) -> Value:
    if value.value is None or value.low is None or value.high is None:
        return value
    if value.value == 0:
        # 97.5 % of an exponential distribution are below 3.69 of its means.
        return Value(unit=value.unit, value=float(random.exponential(value.high / 3.69)))
    at = float(np.clip(random.standard_normal(), -2.5, 2.5)) / 1.96
    side = value.high - value.value if at > 0 else value.value - value.low
    return Value(unit=value.unit, value=max(value.value + at * side, value.value * 1e-3))


@dataclass(frozen=True)
class Plan:
    """A way to send: the algorithm, the number of streams, keys of `tcp`, and further keys of the flows."""

    cc: str | Mapping[str, Any]
    streams: int = 1
    tcp: Mapping[str, Any] | None = None
    flow: Mapping[str, Any] = field(default_factory=dict)

    def scenario(self, found: Estimates, duration_s: float, seed: int = 1, **keys: Any) -> Scenario:
        """The scenario of this way on a path. `keys` are tables that are added."""
        made = scenario.document(found, flows=[flow(self.cc, count=self.streams, **self.flow)], tcp=self.tcp)
        path = made.pop("path")
        more = {key: value for key, value in made.items() if key not in ("name", "duration", "flow")}
        flows = [*made["flow"], *keys.pop("others", [])]
        interval = {"interval": scenario.time_text(max(duration_s / POINTS, 1e-3))}
        return dumbbell(
            rate=path.pop("rate"), rtt=path.pop("rtt"), buffer=path.pop("buffer"), path=path, flows=flows,
            duration=f"{duration_s:.6g} s", seed=seed, large=True, trace=interval, **{**more, **keys},
        )  # fmt: skip


def core_s(found: Estimates, runs: int, duration_s: float) -> float:
    """About how many seconds of a core so many simulations of the path take, if they fill it."""
    return runs * duration_s * (found.rate_bit_s.best or 0.0) / 8 / found.packet_bytes / PACKETS_S


def series_of(run: Run, streams: int, window_is: str) -> dict[str, Array]:
    """The series of the first flows of a run together: goodput and windows as sums, round-trip times as the mean."""
    columns = run.table("flows")
    own = columns["flow"].to_numpy() < streams
    times = columns["time_s"].to_numpy()[own]
    grid, place = np.unique(times, return_inverse=True)

    def total(name: str) -> Array:
        return np.asarray(np.bincount(place, columns[name].to_numpy()[own], minlength=len(grid)), float)

    payload = payload_of(run)
    rtt = columns["srtt_s"].to_numpy()[own]
    timed = np.isfinite(rtt)
    count = np.bincount(place[timed], minlength=len(grid))
    summed = np.bincount(place[timed], rtt[timed], minlength=len(grid))
    return {
        "time_s": grid,
        "goodput_bit_s": total("goodput_bit_s"),
        "rtt_s": np.where(count > 0, summed / np.maximum(count, 1), math.nan),
        "window_bytes": total("pipe_bytes") if window_is == "flight" else total("cwnd_segments") * payload,
    }


def payload_of(run: Run) -> float:
    """Payload of a full packet of a run, in bytes."""
    size, headers = scenario.packet_of(run.scenario.document)
    return size - headers


def predict(
    found: Estimates,
    plan: Plan,
    duration_s: float,
    *,
    count: int = 5,
    window_is: str = "cwnd",
    progress: Callable[[float], object] | None = None,
) -> tuple[Prediction, list[Run]]:
    """Simulate the path's middle values and `count - 1` draws, each with its own seed. Returns the runs as well."""
    paths = draws(found, count)
    runs = run_many([plan.scenario(one, duration_s, seed) for seed, one in enumerate(paths, 1)], progress=progress)
    return of_runs(runs, plan, window_is=window_is), runs


def of_runs(runs: Sequence[Run], plan: Plan, *, window_is: str = "cwnd", **keys: Any) -> Prediction:
    """The prediction of runs, of which the first has the middle values."""
    all_series = [series_of(run, plan.streams, window_is) for run in runs]
    times = all_series[0]["time_s"]

    def band(key: str) -> Band:
        return Band.of([np.interp(times, one["time_s"], one[key]) for one in all_series])

    name = plan.cc if isinstance(plan.cc, str) else str(plan.cc["name"])
    return Prediction(
        cc=name,
        streams=plan.streams,
        time_s=[float(one) for one in times],
        goodput_bit_s=band("goodput_bit_s"),
        rtt_s=band("rtt_s"),
        window_bytes=band("window_bytes"),
        draws=len(runs),
        window_is=window_is,
        **keys,
    )


def extended(prediction: Prediction, until_s: float) -> tuple[Prediction, str]:
    """The prediction up to a time, and a note if it is longer: it goes on with the means of its second half."""
    times = prediction.time_s
    if len(times) < 2 or until_s <= times[-1] * 1.01:
        return prediction, ""
    step = max(times[-1] - times[-2], (until_s - times[-1]) / POINTS)
    later = list(np.arange(times[-1] + step, until_s + step, step))

    def longer(values: list[float | None]) -> list[float | None]:
        half = np.array(values[len(values) // 2 :], float)
        known = half[np.isfinite(half)]
        return [*values, *[float(known.mean()) if len(known) else None] * len(later)]

    bands = {}
    for key in QUANTITIES:
        band: Band = getattr(prediction, key)
        bands[key] = Band(longer(band.middle), longer(band.low), longer(band.high))
    note = f"the prediction was simulated for {times[-1]:.4g} s; after that it is the mean of its second half"
    return msgspec.structs.replace(prediction, time_s=[*times, *map(float, later)], **bands), note


@dataclass(frozen=True)
class Parting:
    """How a measured quantity compares with its prediction: the means, and when and how far it first left the band."""

    quantity: str
    measured: float
    predicted: float
    from_s: float | None = None
    for_s: float = 0.0
    share: float = 0.0

    @property
    def text(self) -> str:
        """In words."""
        name, unit, factor = QUANTITIES[self.quantity]
        means = f"{name}: {self.measured * factor:.4g} {unit} measured, {self.predicted * factor:.4g} {unit} predicted"
        ratio = f" ({100 * (self.measured / self.predicted - 1):+.1f} %)" if self.predicted else ""
        if self.from_s is None:
            return f"{means}{ratio}; within the band throughout"
        side = f"{abs(100 * self.share):.0f} % {'above' if self.share > 0 else 'below'} it"
        return f"{means}{ratio}; first leaves the band at {self.from_s:.4g} s, for {self.for_s:.3g} s, {side}"


def partings(prediction: Prediction, measured: Mapping[str, Array]) -> list[Parting]:
    """Where measured series leave the predicted band for longer than 2 s, or a twentieth of the time if that is longer."""
    found = []
    times = np.array(prediction.time_s)
    for key in QUANTITIES:
        band: Band = getattr(prediction, key)
        values = np.asarray(measured[key], float)
        at = np.asarray(measured["time_s"], float)
        inside_ = (at <= times[-1]) & np.isfinite(values) if len(times) else np.zeros(len(at), bool)
        if inside_.sum() < 2:
            continue
        at, values = at[inside_], values[inside_]
        middle, low, high = (np.interp(at, times, np.array(one, float)) for one in (band.middle, band.low, band.high))
        least = max(PARTED_S, PARTED_SHARE * float(at[-1] - at[0]))
        # Goodput comes in bursts, above all in a recovery: means of a quarter of that time are compared.
        width = least / 4
        bins = ((at - at[0]) / width).astype(int)
        count = np.maximum(np.bincount(bins), 1)
        measured_, low_, high_ = (np.bincount(bins, np.nan_to_num(one)) / count for one in (values, low, high))
        starts = at[0] + width * np.arange(len(count))
        beyond = np.where(measured_ > high_ * (1 + TOLERANCE), measured_ / np.maximum(high_, 1e-12) - 1, 0.0)
        beyond = np.where(measured_ < low_ * (1 - TOLERANCE), measured_ / np.maximum(low_, 1e-12) - 1, beyond)
        beyond[np.bincount(bins, np.isfinite(low)) == 0] = 0.0
        known = np.isfinite(middle)
        if not known.any():
            continue
        means = (float(np.mean(values[known])), float(np.mean(middle[known])))
        sides = np.sign(np.nan_to_num(beyond))
        edges = np.flatnonzero(np.diff(np.concatenate([[0.0], sides, [0.0]])))
        parted = next(
            (
                Parting(key, *means, float(starts[a]), width * float(b - a), float(np.mean(beyond[a:b])))
                for a, b in pairwise(edges)
                if sides[a] and width * (b - a) >= least
            ),
            Parting(key, *means),
        )
        found.append(parted)
    return found
