"""The work of a worker: it runs a few scenarios and collects their results, on a local thread or on a remote machine."""

import functools
import hashlib
import json
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from elephan import _core
from elephan.api.run import OPTIONAL, TABLES, Run
from elephan.api.scenario import Scenario
from elephan.engines.run import run as simulate
from elephan.foreign import names
from elephan.studies.statistics import mser5


class VersionMismatchError(RuntimeError):
    """A worker and the client have different code, so their results might differ."""


# The code that determines results, besides the extension module and what runs in a guest kernel. Code that only shows
# results is not listed: changing it repeats no run.
MAKES_RESULTS = (
    *("api/scenario.py", "api/cellular.py", "api/run.py", "api/part.py", "api/registry.py", "api/summary.py"),
    *("engines/run.py", "engines/sim.py", "engines/tables.py", "engines/fluid.py", "engines/integrate.py"),
    *("engines/linux.py", "engines/guest.py"),
    *(
        "kernel/__init__.py",
        "kernel/build.py",
        "guest/image.py",
        "kernel/libbpf.py",
        "kernel/loader.py",
        "kernel/names.py",
    ),
    *("foreign/names.py", "foreign/controller.py", "foreign/controllers.py", "foreign/compiled.py"),
    "gym/policy.py",
    *("studies/statistics.py", "studies/sweeps/worker.py"),
)

# What `steady` finds, and what it means.
STEADY = {
    "warmup_s": "Start of the measuring window that MSER-5 takes for transient.",
    "steady_goodput_bit_s": "Goodput of all flows after the warm-up.",
    "steady_fairness": "Minimum of the flows' goodputs over their maximum, after the warm-up.",
    "steady_jain": "Jain's index of the flows' goodputs after the warm-up.",
}


@functools.cache
def code_version() -> str:
    """The version of the package, and a hash of the code that determines results."""
    package = Path(__file__).parents[2]
    digest = hashlib.blake2b(digest_size=6)
    guest = sorted((package / "kernel" / "guest").glob("*"))
    for path in (Path(str(_core.__file__)), *(package / name for name in MAKES_RESULTS), *guest):
        digest.update(path.read_bytes())
    return f"{_core.__version__}+{digest.hexdigest()}"


def identity(scenario: str, code: str) -> str:
    """The identity of a run: a hash of its scenario as canonical JSON (engine and seed included) and of the code version.

    It includes the algorithms from outside that the scenario names, which have to be registered.
    """
    return hashlib.blake2b(f"{code}{names.digests(scenario)}\n{scenario}".encode(), digest_size=16).hexdigest()


def _provide(run: str, scenario: str, code: str) -> None:
    """Register the algorithms from outside that a scenario names, of which only the names were sent.

    Raises `VersionMismatchError` if they are not those of the sender.
    """
    if not names.mentioned(scenario):
        return
    # The other engines run on the sender's machine.
    is_simulated = json.loads(scenario)["engine"] == "sim"
    if is_simulated and identity(scenario, code) == run:
        return
    names.provide_all(scenario)
    if is_simulated and identity(scenario, code) != run:
        raise VersionMismatchError(
            f"expected the algorithms that the client has, found others:{names.digests(scenario)}"
        )


@dataclass(frozen=True)
class Batch:
    """A few finished runs: a row for each, and the samples of all, with the identity of the run in their first column."""

    rows: list[dict[str, Any]]
    samples: dict[str, pa.Table]


def compute(
    runs: Sequence[tuple[str, str]], code: str, cancel: _core.Cancel | None = None, *, isolate: bool = False
) -> Batch:
    """Run scenarios, given as pairs of an identity and canonical JSON.

    A run that fails gives a row with its error. If `cancel` is set, runs that have not finished have no row. With
    `isolate` each has a process of its own, whose CPU time is not measured.

    Raises `VersionMismatchError` if the client has other code, or other algorithms from outside.
    """
    # With `cancel`, a run stays in this thread, whose CPU time is measured.
    cancel = cancel or _core.Cancel()
    if code_version() != code:
        raise VersionMismatchError(f"expected Elephan {code}, as the client has, found {code_version()}")
    rows: list[dict[str, Any]] = []
    samples: dict[str, list[tuple[str, pa.Table]]] = {name: [] for name in TABLES}
    for run_identity, scenario in runs:
        wall, cpu = time.perf_counter(), time.thread_time()
        try:
            _provide(run_identity, scenario, code)
            run = simulate(Scenario(scenario), cancel=cancel, isolate=isolate)
        except KeyboardInterrupt:
            if cancel.is_set():
                break
            raise
        except (SystemExit, VersionMismatchError):
            raise
        # A panic of the extension module is not an `Exception`.
        except BaseException as error:
            rows.append({"run": run_identity, "status": "failed", "error": str(error) or type(error).__name__})
            continue
        rows.append(
            {
                "run": run_identity,
                "status": "ok",
                "error": None,
                "wall_s": time.perf_counter() - wall,
                "cpu_s": None if isolate else time.thread_time() - cpu,
                **run.summary.scalars(),
                **steady(run),
                "summary": json.dumps(run.summary.to_dict()),
            }
        )
        for name in TABLES:
            if name not in OPTIONAL or any(len(column) for column in run.columns.get(name, {}).values()):
                samples[name].append((run_identity, run.table(name)))
    return Batch(rows, {name: _joined(tables) for name, tables in samples.items() if tables})


def _joined(tables: Sequence[tuple[str, pa.Table]]) -> pa.Table:
    """The samples of several runs as one table, with the identity of the run in its first column."""
    runs = np.repeat(np.arange(len(tables), dtype=np.int32), [table.num_rows for _, table in tables])
    column = pa.DictionaryArray.from_arrays(runs, pa.array([identity for identity, _ in tables], pa.string()))
    table = pa.concat_tables([table for _, table in tables]).combine_chunks()
    return table.add_column(0, pa.field("run", column.type), column)


def steady(run: Run) -> dict[str, float | None]:
    """Metrics of the measuring window without its warm-up, which MSER-5 detects in the total goodput of all flows."""
    nothing = dict.fromkeys(STEADY)
    columns = run.columns["flows"]
    time_s = columns["time_s"]
    inside = (time_s > run.summary.from_s) & (time_s <= run.summary.to_s)
    if not inside.any():
        return nothing
    goodput, flow = columns["goodput_bit_s"][inside], columns["flow"][inside]
    times, at = np.unique(time_s[inside], return_inverse=True)
    warm = mser5(np.bincount(at, weights=goodput))
    if warm is None:
        return nothing
    late = at >= warm
    each = np.bincount(flow[late], weights=goodput[late], minlength=len(run.labels)) / (len(times) - warm)
    squares = float((each**2).sum())
    return {
        "warmup_s": float(times[warm]) - float(times[0]),
        "steady_goodput_bit_s": float(each.sum()),
        "steady_fairness": float(each.min() / each.max()) if each.max() > 0 else None,
        "steady_jain": float(each.sum()) ** 2 / (len(each) * squares) if squares > 0 else None,
    }
