"""Every command stops after a signal, leaves only complete results behind, and reports them.

A signal comes at a known step: the command's own process sends it, for instance when the computation asks for the third time
whether it goes on. A few signals at real moments are for `make slow`.
"""

import os
import random
import re
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from types import FrameType
from typing import Any

import pytest
from command_line import INTERRUPTED

from elephan import Dataset, Run, Sweep, load, sweep
from elephan.engines.run import run as simulate
from elephan.guest import image
from elephan.studies.sweeps import worker
from elephan.studies.sweeps.schedulers import Local
from elephan.studies.sweeps.writer import Writer

SCENARIO = """
duration = "100000 s"
path = { rate = "1 Gbit/s", rtt = "20 ms", buffer = "50% bdp" }
flow = [{ cc = "htcp", count = 2 }]
measure = { interval = "1 s" }
trace = { interval = "1 s" }
"""
SWEEP = SCENARIO.replace("100000 s", "1 s") + '[sweep]\nrepeat = 2000\n"path.rtt" = ["10 ms", "20 ms"]\n'
# Steps are the polls of a computation, which call the function of its progress, and the calls of what has no polls.
# Another thread sends the signal, because the computation itself has to notice it: in `step` the handler would run at once.
SCRIPT = """
import inspect, pathlib, queue, signal, sys, threading
from elephan import _core
from elephan.cli import main, progress, signals
from elephan.engines import fluid

due, taken, sent = {due}, 0, queue.SimpleQueue()

def step():
    global taken
    taken += 1
    if taken in due:
        sent.put(due[taken])

def send():
    while True:
        signal.pthread_kill(threading.main_thread().ident, sent.get())

def counted(module, name):
    good = getattr(module, name)
    signature = inspect.signature(good)
    def call(*arguments, **named):
        given = dict(signature.bind(*arguments, **named).arguments)
        listener = given.get("progress")
        def poll(share):
            step()
            if listener is not None:
                listener(share)
        if "progress" in signature.parameters and given.get("cancel") is None:
            given["progress"] = poll
        else:
            step()
        return good(**given)
    setattr(module, name, call)

threading.Thread(target=send, daemon=True).start()
# The speed of the machine is not measured first.
progress._event_s = lambda: progress.USUAL_EVENT_S
for name in ("run_many", "run_linux", "run_guest", "independent_window"):
    counted(_core, name)
counted(fluid, "integrate")
{more}
main()
"""


def started(folder: Path, *arguments: str, due: Mapping[int, int], more: str, ignored: bool) -> "subprocess.Popen[str]":
    """A command in a session of its own. With `ignored` it starts as `nohup` starts it."""
    # A shell that ignores a signal passes this on to its children.
    command = ["sh", "-c", 'trap "" HUP; exec "$@"', "sh"] if ignored else []
    script = SCRIPT.replace("{due}", repr({step: int(number) for step, number in due.items()})).replace("{more}", more)
    return subprocess.Popen(
        [*command, sys.executable, "-c", script, *arguments],
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def elephan(
    folder: Path, *arguments: str, due: Mapping[int, int], more: str = "", ignored: bool = False
) -> tuple[int, str]:
    """The exit code and the last line of a command that gets signals at the steps of `due`."""
    return ended(started(folder, *arguments, due=due, more=more, ignored=ignored))


def ended(one: "subprocess.Popen[str]") -> tuple[int, str]:
    """The exit code and the last line of a command, which leaves no process."""
    try:
        _, said = one.communicate()
    finally:
        one.kill()
        one.wait()
    assert "Traceback" not in said, said
    with pytest.raises(ProcessLookupError):
        os.killpg(one.pid, 0)
    # The target is reported too, if the command had begun to write a folder.
    return one.returncode, re.sub(r"(nothing was written) to \S+", r"\1", (said.strip().splitlines() or [""])[-1])


def left(folder: Path) -> list[str]:
    """The results that a command wrote."""
    return sorted(path.name for path in folder.iterdir() if path.name != "scenario.toml")


NOTHING = "interrupted; nothing was written"
COMPARE = ("--rate", "1 Gbit/s", "--duration", "100000 s", "--repeat", "3")


@pytest.mark.parametrize(
    ("number", "step", "arguments"),
    [
        (signal.SIGINT, 1, ("run", "scenario.toml")),
        (signal.SIGTERM, 3, ("run", "scenario.toml")),
        (signal.SIGHUP, 5, ("run", "scenario.toml")),
        (signal.SIGTERM, 2, ("run", "scenario.toml", "--engine", "model")),
        (signal.SIGINT, 1, ("compare", *COMPARE)),
        (signal.SIGTERM, 3, ("compare", *COMPARE)),
        (signal.SIGHUP, 2, ("model", "rank", "--duration", "100000 s")),
        (signal.SIGTERM, 2, ("model", "response", "--cc", "reno", "--loss", ",".join(["1e-6"] * 100))),
        (signal.SIGINT, 2, ("model", "agreement", "--duration", "50000 s")),
        (signal.SIGTERM, 2, ("model", "plot", "response", "--most", "100000 s")),
    ],
)
def test_a_command_stops_and_leaves_nothing(number: int, step: int, arguments: tuple[str, ...], tmp_path: Path) -> None:
    (tmp_path / "scenario.toml").write_text(SCENARIO)
    assert elephan(tmp_path, *arguments, due={step: number}) == (128 + number, NOTHING)
    assert [name for name in left(tmp_path) if name != "results"] == []
    assert not (tmp_path / "results").exists() or left(tmp_path / "results") == []


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
@pytest.mark.parametrize("workers", ["1", "3"])
def test_a_sweep_keeps_every_run_that_has_finished(number: int, workers: str, tmp_path: Path) -> None:
    (tmp_path / "scenario.toml").write_text(SWEEP)
    # Nothing is written before the signal, which comes when the eleventh run has finished. Every finished run is counted.
    more = """
from elephan.studies.sweeps import loop, worker
loop.FLUSH_S = float("inf")
simulate, step = worker.simulate, lambda: None
one_at_a_time, count = threading.Lock(), 0
def finished(*arguments, **named):
    global count
    run = simulate(*arguments, **named)
    with one_at_a_time, open("finished", "a") as file:
        file.write("1\\n")
        count += 1
        if count == 11:
            sent.put(due[1])
    return run
worker.simulate = finished
"""
    code, said = elephan(
        tmp_path, "sweep", "scenario.toml", "--out", "out", "--workers", workers, due={1: number}, more=more
    )
    assert code == 128 + number, said
    kept = len((tmp_path / "finished").read_text().split())
    assert said == f"interrupted; {kept} of 4000 runs are in out; repeat the command to continue"
    assert Dataset(tmp_path / "out").index().height == kept
    assert not [path for path in tmp_path.rglob(".elephan-*") if path.name != ".elephan-lock"]


def test_a_signal_at_any_line_loses_no_finished_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An exception comes where Python would call the handler of a signal: before each line of the loop, its pool and writer."""
    (tmp_path / "scenario.toml").write_text(
        SCENARIO.replace("100000 s", "10 ms").replace("1 s", "1 ms") + "[sweep]\nrepeat = 6\n"
    )
    scenario = load(tmp_path / "scenario.toml")
    monkeypatch.setattr("elephan.studies.sweeps.batches.BATCH_S", 0.0)
    finished: list[int] = []

    def simulated(*arguments: Any, **named: Any) -> Run:
        run = simulate(*arguments, **named)
        finished.append(1)
        return run

    monkeypatch.setattr(worker, "simulate", simulated)
    names = ("_run_missing", "_take", "finished", "forget", "close", "add", "flush")
    codes = {getattr(kind, name).__code__ for kind in (Sweep, Local, Writer) for name in names if hasattr(kind, name)}

    def interrupted(out: Path, line: tuple[str, int] | None, visit: int) -> set[tuple[str, int]]:
        """The lines that a sweep passes which is interrupted when it comes to a line for the `visit`-th time."""
        passed: Counter[tuple[str, int]] = Counter()

        def trace(frame: FrameType, event: str, _: object) -> Any:
            if frame.f_code not in codes:
                return None
            here = (frame.f_code.co_name, frame.f_lineno)
            if event == "line":
                passed[here] += 1
                if here == line and passed[here] == visit:
                    raise KeyboardInterrupt
            return trace

        finished.clear()
        sys.settrace(trace)
        try:
            sweep(scenario, out, workers=1).run()
        except KeyboardInterrupt:
            pass
        finally:
            sys.settrace(None)
        return set(passed)

    lines = interrupted(tmp_path / "whole", None, 0)
    assert len(lines) > 40
    for line in sorted(lines):
        for visit in (1, 2):
            out = tmp_path / f"{line[0]}-{line[1]}-{visit}"
            interrupted(out, line, visit)
            kept = Dataset(out).index().height if (out / "sweep.json").exists() else 0
            assert kept == len(finished), (line, visit)


def test_a_reproduction_keeps_its_runs(tmp_path: Path) -> None:
    # The signal comes when the second run is stored.
    more = """
import elephan
from elephan.api.run import Run
from elephan.studies.reproduce import catalogue, lab
def runs(one):
    path = {"rate": "20 Mbit/s", "rtt": "20 ms", "duration": "5 s", "flows": [elephan.flow("reno")]}
    one.run([elephan.dumbbell(**path, seed=seed) for seed in range(1, 31)])
    return lab.Report(one)
lab.experiment("ltcp2003/few-runs", "a few short runs")(runs)
save, stored = Run.save, []
def counted_save(self, *arguments, **named):
    stored.append(save(self, *arguments, **named))
    if len(stored) == 2:
        sent.put(due[1])
    return stored[-1]
step = lambda: None
Run.save = counted_save
"""
    code, said = elephan(tmp_path, "reproduce", "ltcp2003/few-runs", due={1: signal.SIGTERM}, more=more)
    runs = tmp_path / "results" / "reproduce" / "runs"
    whole = len(list(runs.glob("*/run.json")))
    assert whole >= 2
    assert code == 143
    assert said == f"interrupted; finished runs are kept in results/reproduce/runs: {whole}"
    assert len(list(runs.iterdir())) == whole


@pytest.mark.slow
@pytest.mark.usefixtures("machine")
@pytest.mark.parametrize("words", [("run", "--engine", "linux"), ("compare", "--engines", "sim,linux")], ids=" ".join)
def test_the_linux_engine_stops(words: tuple[str, ...], tmp_path: Path) -> None:
    (tmp_path / "scenario.toml").write_text(SCENARIO.replace("100000", "300").replace("1 Gbit/s", "20 Mbit/s"))
    arguments = (*words, "scenario.toml")
    assert elephan(tmp_path, *arguments, due={4: signal.SIGTERM}) == (143, NOTHING)


@pytest.mark.slow
@pytest.mark.skipif(not any(not one.outdated for one in image.images()), reason="needs an image of a kernel")
@pytest.mark.parametrize("words", [("run", "--engine", "kernel"), ("compare", "--engines", "sim,kernel")], ids=" ".join)
def test_guests_stop(words: tuple[str, ...], tmp_path: Path) -> None:
    (tmp_path / "scenario.toml").write_text(SCENARIO.replace("100000", "3000"))
    arguments = (*words, "scenario.toml")
    assert elephan(tmp_path, *arguments, due={4: signal.SIGTERM}) == (143, NOTHING)


def test_a_signal_while_numpy_is_loaded_is_an_exception(tmp_path: Path) -> None:
    (tmp_path / "scenario.toml").write_text(SCENARIO.replace("100000 s", "1 s"))
    # The extension asks for the version when it makes its first array.
    more = """
import os
from numpy.lib import NumpyVersion
good = NumpyVersion.__init__
def interrupted(self, version):
    os.kill(os.getpid(), signal.SIGTERM)
    good(self, version)
NumpyVersion.__init__ = interrupted
"""
    assert elephan(tmp_path, "run", "scenario.toml", due={}, more=more) == (128 + signal.SIGTERM, NOTHING)


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_command_stops_at_any_moment(number: int, tmp_path: Path) -> None:
    (tmp_path / "scenario.toml").write_text(SCENARIO)
    seed = random.SystemRandom().randrange(2**32)
    print(f"moment: random.Random({seed})")
    more = "signals.heed(); pathlib.Path('ready').touch()"
    one = started(tmp_path, "run", "scenario.toml", due={}, more=more, ignored=False)
    while not (tmp_path / "ready").exists() and one.poll() is None:
        time.sleep(0.01)
    time.sleep(random.Random(seed).uniform(0, 2))
    one.send_signal(number)
    code, said = ended(one)
    assert (code, said) == (128 + number, NOTHING)


# Nothing of Python runs during the run.
WITHOUT_A_LISTENER = """
import elephan

endless = elephan.dumbbell(rate="1 Gbit/s", rtt="20 ms", flows=[elephan.flow("htcp")], duration="100000 s",
                           measure={"interval": "100 s"}, trace={"interval": "100 s"})
begun.put(None)
elephan.run(endless)
"""


def test_a_run_that_calls_nothing_of_python_stops() -> None:
    program = [sys.executable, "-c", INTERRUPTED + WITHOUT_A_LISTENER]
    done = subprocess.run(program, capture_output=True, text=True, check=False)
    assert done.returncode == -signal.SIGINT
    assert done.stderr.strip().endswith("KeyboardInterrupt")


# The first of the runs computes when a signal comes, and the second one is just being started.
STARTING = """
import pathlib, subprocess, threading
from concurrent.futures import ThreadPoolExecutor
from elephan import Scenario, _core, dumbbell, flow
from elephan.engines.isolated import run_many as run_isolated
from elephan.studies import side_by_side
from elephan.studies.reproduce.lab import Lab

computes = threading.Event()
def counted(function):
    def call(*arguments, **named):
        computes.set()
        return function(*arguments, **named)
    return call
_core.run_many, subprocess.Popen = counted(_core.run_many), counted(subprocess.Popen)
start, begun = ThreadPoolExecutor.submit, []
def submit(self, *arguments, **named):
    if begun:
        computes.wait()
        raise KeyboardInterrupt
    begun.append(start(self, *arguments, **named))
    return begun[0]
ThreadPoolExecutor.submit = submit
endless = dumbbell(rate="1 Gbit/s", rtt="20 ms", flows=[flow("htcp")], duration="100000 s",
                   measure={"interval": "100 s"}, trace={"interval": "100 s"})
"""


@pytest.mark.parametrize(
    "work",
    [
        "list(side_by_side.pairs({'one': endless}))",
        "run_isolated([endless, endless])",
        "Lab(pathlib.Path('lab')).run([endless, endless.with_settings({'seed': '2'})])",
    ],
)
def test_a_signal_while_runs_are_started_stops_those_that_go_on(work: str, tmp_path: Path) -> None:
    program = [sys.executable, "-c", STARTING + work]
    done = subprocess.run(program, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == -signal.SIGINT
    assert done.stderr.strip().endswith("KeyboardInterrupt")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_the_page_ends_with_its_runs(number: int, tmp_path: Path) -> None:
    # The signal comes when the server accepts connections, and a run computes.
    more = """
import uvicorn
from elephan.ui import live
main_of, loop_of = live.LiveRuns.__init__, uvicorn.Server.main_loop
document = {"duration": "100000 s", "path": {"rate": "1 Gbit/s", "rtt": "20 ms"}, "flow": [{"cc": "htcp"}],
            "measure": {"interval": "100 s"}, "trace": {"interval": "100 s"}}
def with_a_run(self, limits, results):
    main_of(self, live.Limits(events=10**12, samples=10**9, memory_bytes=10**12), results)
    self.start(document, 0.0)
def serving(self):
    step()
    return loop_of(self)
live.LiveRuns.__init__ = with_a_run
uvicorn.Server.main_loop = serving
"""
    outcome = elephan(tmp_path, "ui", "--port", "0", "--no-browser", due={1: number}, more=more)
    assert outcome == (128 + number, "interrupted; the page is closed, results are in results")


def test_a_second_signal_ends_the_process_at_once(tmp_path: Path) -> None:
    (tmp_path / "scenario.toml").write_text(SCENARIO)
    # The command cleans up for hours, during which Python does not reach its own handlers.
    more = """
import hashlib
def slow(*_, **__):
    try:
        step()
        # Not at once: a signal between this call and its wait would not end the wait.
        while not threading.Event().wait(0.01):
            pass
    finally:
        step()
        hashlib.pbkdf2_hmac("sha256", b"", b"", 2**31 - 1)
_core.run_many = slow
"""
    due = {1: signal.SIGINT, 2: signal.SIGINT}
    code, _ = elephan(tmp_path, "run", "scenario.toml", due=due, more=more)
    assert code == -signal.SIGINT


def test_the_same_signal_twice_in_a_moment_is_one_request(tmp_path: Path) -> None:
    (tmp_path / "scenario.toml").write_text(SCENARIO)
    # The second one comes while the handler waits for it.
    more = """
from types import SimpleNamespace
signals.time = SimpleNamespace(sleep=lambda _: signal.raise_signal(signal.SIGTERM))
"""
    assert elephan(tmp_path, "run", "scenario.toml", due={2: signal.SIGTERM}, more=more) == (143, NOTHING)


def test_a_logout_is_ignored_under_nohup(tmp_path: Path) -> None:
    (tmp_path / "scenario.toml").write_text(SCENARIO)
    due = {2: signal.SIGHUP, 5: signal.SIGTERM}
    assert elephan(tmp_path, "run", "scenario.toml", due=due, ignored=True) == (143, NOTHING)


def test_importing_the_package_leaves_signals_alone() -> None:
    handlers = "[*map(signal.getsignal, (1, 2, 15))]"
    script = f"import signal; before = {handlers}; import elephan, elephan.cli; print(before == {handlers})"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout == "True\n"
