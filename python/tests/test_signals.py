"""Every command stops soon after a signal, leaves only complete results behind, and reports them."""

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from elephan import kernel
from elephan.kernel import image

# The goal is one second, but this machine may be busy.
STOPS_WITHIN_S = 3.0
SCENARIO = """
duration = "100000 s"
path = { rate = "1 Gbit/s", rtt = "20 ms", buffer = "50% bdp" }
flow = [{ cc = "htcp", count = 2 }]
measure = { interval = "1 s" }
trace = { interval = "1 s" }
"""
SWEEP = SCENARIO.replace("100000 s", "1 s") + '[sweep]\nrepeat = 2000\n"path.rtt" = ["10 ms", "20 ms"]\n'
# The file `ready` exists once the computation has started.
SCRIPT = """
import pathlib, signal, sys, time
from elephan import _core
from elephan.engines import fluid
from elephan.studies import sweeps
from elephan.cli import main

def told(function):
    def call(*arguments, **named):
        pathlib.Path("ready").touch()
        return function(*arguments, **named)
    return call

for name in ("run_many", "run_linux", "run_guest", "independent_window"):
    setattr(_core, name, told(getattr(_core, name)))
fluid.integrate = told(fluid.integrate)
{more}
main()
"""


@contextmanager
def elephan(folder: Path, *arguments: str, more: str = "", ignored: bool = False) -> Iterator[subprocess.Popen[str]]:
    """A command at work, yielded once it computes; with `ignored`, started as `nohup` does. It is ended by its process id."""
    # A shell that ignores a signal passes this on to its children.
    command = ["sh", "-c", 'trap "" HUP; exec "$@"', "sh"] if ignored else []
    one = subprocess.Popen(
        [*command, sys.executable, "-c", SCRIPT.replace("{more}", more), *arguments],
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        wait_for(one, (folder / "ready").exists)
        time.sleep(0.2)
        yield one
    finally:
        one.kill()
        one.wait()


def wait_for(one: subprocess.Popen[str], happens: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 60
    while not happens():
        assert one.poll() is None, one.communicate()
        assert time.monotonic() < deadline
        time.sleep(0.02)


def stop(one: subprocess.Popen[str], number: int) -> tuple[int, str]:
    """The exit code and the last line of a command that receives a signal; it must end in time."""
    began = time.monotonic()
    one.send_signal(number)
    _, said = one.communicate(timeout=30)
    assert time.monotonic() - began < STOPS_WITHIN_S
    assert "Traceback" not in said, said
    # No process of its session is left.
    with pytest.raises(ProcessLookupError):
        os.killpg(one.pid, 0)
    # The target is reported too, if the command had begun to write a folder.
    return one.returncode, re.sub(r"(nothing was written) to \S+", r"\1", said.strip().splitlines()[-1])


def left(folder: Path) -> list[str]:
    """The results that a command wrote."""
    return sorted(path.name for path in folder.iterdir() if path.name not in ("ready", "scenario.toml"))


NOTHING = "interrupted; nothing was written"
COMPARE = ("--rate", "1 Gbit/s", "--duration", "100000 s", "--repeat", "3")


@pytest.mark.parametrize(
    ("number", "arguments"),
    [
        (signal.SIGINT, ("run", "scenario.toml")),
        (signal.SIGTERM, ("run", "scenario.toml")),
        (signal.SIGHUP, ("run", "scenario.toml")),
        (signal.SIGTERM, ("run", "scenario.toml", "--engine", "model")),
        (signal.SIGINT, ("compare", *COMPARE)),
        (signal.SIGTERM, ("compare", *COMPARE)),
        (signal.SIGHUP, ("recommend", "--duration", "100000 s")),
        # Computations of about a second each, in Rust.
        (signal.SIGTERM, ("model", "response", "--cc", "reno", "--loss", ",".join(["1e-6"] * 100))),
        (signal.SIGINT, ("model", "agreement", "--duration", "50000 s")),
        (signal.SIGTERM, ("model", "plot", "response", "--most", "100000 s")),
    ],
)
def test_a_command_stops_and_leaves_nothing(number: int, arguments: tuple[str, ...], tmp_path: Path) -> None:
    (tmp_path / "scenario.toml").write_text(SCENARIO)
    with elephan(tmp_path, *arguments) as one:
        assert stop(one, number) == (128 + number, NOTHING)
    assert [name for name in left(tmp_path) if name != "results"] == []
    assert not (tmp_path / "results").exists() or left(tmp_path / "results") == []


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
@pytest.mark.parametrize("workers", ["1", "3"])
def test_a_sweep_keeps_every_run_that_has_finished(number: int, workers: str, tmp_path: Path) -> None:
    (tmp_path / "scenario.toml").write_text(SWEEP)
    arguments = ("sweep", "scenario.toml", "--out", "out", "--workers", workers)
    # Results are written every 15 s, so none are written yet when the signal arrives. Every finished run is counted.
    more = """
simulate = sweeps.worker.simulate
def counted(*arguments, **named):
    run = simulate(*arguments, **named)
    with open("finished", "a") as file:
        file.write("1\\n")
    return run
sweeps.worker.simulate = counted
"""
    finished = tmp_path / "finished"
    with elephan(tmp_path, *arguments, more=more) as one:
        wait_for(one, lambda: finished.exists() and len(finished.read_text().split()) > 10)
        assert not list((tmp_path / "out").glob("index*"))
        code, said = stop(one, number)
    kept = len(finished.read_text().split())
    assert (code, said) == (
        128 + number,
        f"interrupted; {kept} of 4000 runs are in out; repeat the command to continue",
    )
    assert not [path for path in tmp_path.rglob(".elephan-*") if path.name != ".elephan-lock"]


def test_a_reproduction_keeps_its_runs(tmp_path: Path) -> None:
    published = Path(__file__).parents[2] / "scenarios" / "published"
    (tmp_path / "scenarios").mkdir()
    (tmp_path / "scenarios" / "published").symlink_to(published)
    runs = tmp_path / "results" / "reproduce" / "runs"
    with elephan(tmp_path, "reproduce", "li2006/utilisation") as one:
        wait_for(one, lambda: bool(list(runs.glob("*/run.json"))))
        code, said = stop(one, signal.SIGTERM)
    whole = len(list(runs.glob("*/run.json")))
    assert code == 143
    assert said.splitlines()[-1] == f"interrupted; finished runs are kept in results/reproduce/runs: {whole}"
    assert len(list(runs.iterdir())) == whole


@pytest.mark.realtime
@pytest.mark.skipif(os.geteuid() != 0 or bool(kernel.missing()), reason="needs root and a kernel with BTF")
@pytest.mark.parametrize(
    "arguments", [(command, "scenario.toml", "--engine", "linux") for command in ("run", "compare-engines")]
)
def test_the_linux_engine_stops(arguments: tuple[str, ...], tmp_path: Path) -> None:
    (tmp_path / "scenario.toml").write_text(SCENARIO.replace("100000", "300").replace("1 Gbit/s", "20 Mbit/s"))
    with elephan(tmp_path, *arguments) as one:
        assert stop(one, signal.SIGTERM) == (143, NOTHING)


@pytest.mark.skipif(not any(not one.outdated for one in image.images()), reason="needs an image of a kernel")
@pytest.mark.parametrize("command", ["run", "compare-engines"])
def test_guests_stop(command: str, tmp_path: Path) -> None:
    (tmp_path / "scenario.toml").write_text(SCENARIO.replace("100000", "3000"))
    with elephan(tmp_path, command, "scenario.toml", "--engine", "kernel") as one:
        assert stop(one, signal.SIGTERM) == (143, NOTHING)


# The first of the runs computes when a signal comes, and the second one is just being started.
STARTING = """
import pathlib, time
from concurrent.futures import ThreadPoolExecutor
from elephan import Scenario, dumbbell, flow
from elephan.engines.run import run_isolated
from elephan.studies import side_by_side
from elephan.studies.reproduce.lab import Lab

start, begun = ThreadPoolExecutor.submit, []
def submit(self, *arguments, **named):
    if begun:
        time.sleep(0.5)
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
    done = subprocess.run(program, cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == -signal.SIGINT
    assert done.stderr.strip().endswith("KeyboardInterrupt")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_the_page_ends_with_its_runs(number: int, tmp_path: Path) -> None:
    more = """
from elephan.ui import live_runs
main_of = live_runs.LiveRuns.__init__
document = {"duration": "100000 s", "path": {"rate": "1 Gbit/s", "rtt": "20 ms"}, "flow": [{"cc": "htcp"}],
            "measure": {"interval": "100 s"}, "trace": {"interval": "100 s"}}
def with_a_run(self, limits, results):
    main_of(self, live_runs.Limits(events=10**12, samples=10**9, memory_bytes=10**12), results)
    self.start(document, 0.0)
    pathlib.Path("ready").touch()
live_runs.LiveRuns.__init__ = with_a_run
"""
    with elephan(tmp_path, "ui", "--port", "0", "--no-browser", more=more) as one:
        wait_for(one, lambda: _listens(one.pid))
        assert stop(one, number) == (128 + number, "interrupted; the page is closed, results are in results")


def _listens(pid: int) -> bool:
    """Whether a process has a socket that accepts connections."""
    mine = {str(link.readlink()) for link in Path(f"/proc/{pid}/fd").iterdir() if link.is_symlink()}
    lines = [line.split() for line in Path(f"/proc/{pid}/net/tcp").read_text().splitlines()[1:]]
    return any(line[3] == "0A" and f"socket:[{line[9]}]" in mine for line in lines)


def test_a_second_signal_ends_the_process_at_once(tmp_path: Path) -> None:
    (tmp_path / "scenario.toml").write_text(SCENARIO)
    # The command cleans up for a minute, during which Python does not reach its own handlers.
    more = """
def slow(*_, **__):
    pathlib.Path("ready").touch()
    try:
        time.sleep(60)
    finally:
        pathlib.Path("cleaning").touch()
        sum(range(10**11))
_core.run_many = slow
"""
    with elephan(tmp_path, "run", "scenario.toml", more=more) as one:
        one.send_signal(signal.SIGINT)
        wait_for(one, (tmp_path / "cleaning").exists)
        began = time.monotonic()
        one.send_signal(signal.SIGINT)
        assert one.wait(30) == -signal.SIGINT
        assert time.monotonic() - began < STOPS_WITHIN_S


def test_the_same_signal_twice_in_a_moment_is_one_request(tmp_path: Path) -> None:
    (tmp_path / "scenario.toml").write_text(SCENARIO)
    with elephan(tmp_path, "run", "scenario.toml") as one:
        one.send_signal(signal.SIGTERM)
        time.sleep(0.001)
        assert stop(one, signal.SIGTERM) == (143, NOTHING)


def test_a_logout_is_ignored_under_nohup(tmp_path: Path) -> None:
    (tmp_path / "scenario.toml").write_text(SCENARIO)
    with elephan(tmp_path, "run", "scenario.toml", ignored=True) as one:
        one.send_signal(signal.SIGHUP)
        with pytest.raises(subprocess.TimeoutExpired):
            one.wait(0.5)
        assert stop(one, signal.SIGTERM) == (143, NOTHING)


def test_importing_the_package_leaves_signals_alone() -> None:
    handlers = "[*map(signal.getsignal, (1, 2, 15))]"
    script = f"import signal; before = {handlers}; import elephan, elephan.cli; print(before == {handlers})"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout == "True\n"
