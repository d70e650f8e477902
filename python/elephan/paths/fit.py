"""From a capture, a qlog, a log of `ss` or a results folder to a scenario of its path, and back: what its simulation does."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec

from elephan import _core
from elephan.api.registry import algorithms
from elephan.api.run import write_json
from elephan.api.scenario import flow
from elephan.paths import capture, predict, qlog, scenario, series
from elephan.paths.estimates import Estimates
from elephan.paths.infer import infer
from elephan.paths.observed import Array, Observed

# Magic numbers of pcap in both byte orders, with microseconds and nanoseconds, and of pcapng.
MAGIC = {bytes.fromhex(one) for one in ("a1b2c3d4", "d4c3b2a1", "a1b23c4d", "4d3cb2a1", "0a0d0d0a")}
# The default of Linux, where nothing tells the algorithm.
USUAL = "cubic"
# At most so many packets are simulated for a comparison: seconds of a core.
MOST_PACKETS = 2e6
# A core reads so many bytes a second of captures that have headers alone; of whole packets it reads more.
CAPTURE_BYTES_S = 3e7
# And of JSON, which Python reads.
QLOG_BYTES_S = 1e7
MEASURED = "measured.json"


@dataclass(frozen=True)
class Fit:
    """What was estimated, and the prediction of the same transfer on the fitted path."""

    estimates: Estimates
    observed: Observed
    plan: predict.Plan
    is_guessed: bool
    prediction: predict.Prediction
    measured: dict[str, Array]
    partings: list[predict.Parting]


def observe(sources: Sequence[Path]) -> Observed:
    """What a folder of results, a capture (or several of the same time), a qlog, or a log of `ss -ti` shows."""
    first = sources[0]
    if first.is_dir():
        if len(sources) > 1:
            raise _core.ScenarioError(f"{sources[1]}: expected one results folder alone, found more")
        return series.observe_results(first)
    with first.open("rb") as file:
        magic = file.read(4)
    if magic in MAGIC:
        return capture.observe(sources)
    if len(sources) > 1:
        raise _core.ScenarioError(
            f"{sources[1]}: expected several captures, or one qlog or log of ss; found more of these"
        )
    if qlog.is_qlog(first):
        return qlog.observe(first)
    return series.observe_ss(first)


def reading(sources: Sequence[Path]) -> tuple[int, float]:
    """Bytes of files that are to be read, and about how many seconds of a core that takes at most. Raises `OSError`."""
    files = [source for source in sources if not source.is_dir()]
    size = sum(source.stat().st_size for source in files)
    return size, size / (QLOG_BYTES_S if any(map(qlog.is_qlog, files)) else CAPTURE_BYTES_S)


def fit(
    sources: Sequence[Path],
    cc: str | None = None,
    *,
    count: int = 5,
    starting: Callable[[int, float, float], object] | None = None,
    progress: Callable[[float], object] | None = None,
) -> Fit:
    """Estimate the path of a transfer, and simulate the same transfer on it.

    Without `cc` the algorithm is what the source tells; CUBIC if it tells none, or one that the simulator does not have.
    Before the simulations `starting` is called with their number, the duration of each and about how many seconds of a core
    all take. Raises `ScenarioError` if the source cannot be read or tells nothing.
    """
    seen = observe(sources)
    found = infer(seen)
    known = {entry.name for entry in algorithms()}
    told = cc or seen.cc
    is_guessed = cc is None and told not in known
    if is_guessed:
        why = f"no algorithm of the simulator is called {told!r}" if told else "the source does not tell the algorithm"
        note = f"{why}; the comparison is with {USUAL}"
        found = msgspec.structs.replace(found, notes=[*found.notes, note])
    plan = predict.Plan(told if told is not None and not is_guessed else USUAL, seen.streams)
    rate = found.rate_bit_s.best or 1.0
    duration_s = min(max(seen.duration_s, 1e-3), MOST_PACKETS * seen.packet_bytes * 8 / rate)
    if starting is not None:
        starting(count, duration_s, predict.core_s(found, count, duration_s))
    prediction, _ = predict.predict(found, plan, duration_s, count=count, window_is=seen.window_is, progress=progress)
    measured = seen.series(predict.POINTS)
    return Fit(found, seen, plan, is_guessed, prediction, measured, predict.partings(prediction, measured))


def write_into(place: Path, made: Fit) -> None:
    """Write `path.toml`, `path.json`, `prediction.json` and `measured.json` into a folder that exists."""
    scenario.write(place, made.estimates, flows=[flow(made.plan.cc, count=made.plan.streams)], tcp=made.plan.tcp)
    made.prediction.write(place / predict.FILE)
    stored = {key: predict.plain(values) for key, values in made.measured.items()}
    write_json(place / MEASURED, {"window_is": made.observed.window_is, **stored})
