"""Runs in processes of their own."""

import os
import select
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from command_line import ELEPHAN, call, typed
from own import CLASSES, MINE, scenario

import elephan
from elephan import _core
from elephan.engines.isolated import run_many as run_isolated


@pytest.fixture
def crash(tmp_path: Path) -> str:
    return acting(tmp_path, "*(volatile int *)0 = 1")


def acting(folder: Path, what: str, when: int = 5) -> str:
    """Does something in its fifth round trip, or in another, unless its parameter is 1."""
    path = folder / f"acts{'' if when == 5 else when}.c"
    act = f"if (ack->round == {when} && *(double *)state < 1)\n\t\t{what};"
    text = MINE.replace("window->cwnd += window", f"{act}\n\twindow->cwnd += window", 1)
    path.write_text(f"#include <stdio.h>\n{text}")
    return f"lib:{path}"


def test_an_isolated_run_gives_the_same_and_tells_its_progress(tmp_path: Path):
    captured = elephan.dumbbell(
        rate="20 Mbit/s", rtt="40 ms", flows=[elephan.flow("htcp")], duration="3 s", trace={"pcap": ["bottleneck"]}
    )
    shares: list[float] = []
    runs = []
    for isolate in (False, True):
        files = {"bottleneck": str(tmp_path / f"{isolate}.pcap")}
        runs.append(elephan.run(captured, captures=files, progress=shares.append, isolate=isolate))
    assert runs[0].summary == runs[1].summary
    assert runs[0].flows.equals(runs[1].flows)
    assert (tmp_path / "True.pcap").read_bytes() == (tmp_path / "False.pcap").read_bytes()
    assert shares[-1] == 1
    assert runs[1].scenario == captured


def test_a_crash_is_an_error_of_its_run(crash: str):
    told = f"{crash}: expected a run to its end, found SIGSEGV in its process"
    with pytest.raises(elephan.cc.AlgorithmError) as error:
        elephan.run(scenario(crash), isolate=True)
    assert str(error.value) == told
    good, bad, late = run_isolated([scenario("reno"), scenario(crash), scenario({"name": crash, "a": 1})])
    assert isinstance(good, elephan.Run)
    assert str(bad) == told
    assert isinstance(late, elephan.Run)
    with pytest.raises(elephan.cc.AlgorithmError, match="SIGSEGV"):
        elephan.run_many([scenario("reno"), scenario(crash)], isolate=True)
    assert elephan.run_many([scenario("reno")], isolate=True)[0].summary == good.summary


def test_what_foreign_code_prints_and_how_it_ends_is_told(tmp_path: Path):
    assert (
        elephan.run(scenario(acting(tmp_path, 'puts("hello"), fflush(stdout)')), isolate=True).summary.utilisation > 0
    )
    for what, found in (("exit(3)", "exit code 3"), ("abort()", "SIGABRT")):
        with pytest.raises(elephan.cc.AlgorithmError, match=f"expected a run to its end, found {found} in its process"):
            elephan.run(scenario(acting(tmp_path, what)), isolate=True)


def test_an_exception_keeps_its_kind_and_cause(tmp_path: Path):
    (tmp_path / "mine.py").write_text(CLASSES)
    with pytest.raises(elephan.cc.AlgorithmError, match=r"flow 1 .*ZeroDivisionError") as error:
        elephan.run(scenario(f"python:{tmp_path}/mine.py:Falls"), isolate=True)
    assert isinstance(error.value.__cause__, ZeroDivisionError)
    with pytest.raises(elephan.ScenarioError, match="scenario: x: expected one of the keys name"):
        elephan.run(elephan.Scenario({**scenario("fast").document, "x": 1}), isolate=True)


def test_a_run_can_be_stopped_even_in_a_loop_without_end(tmp_path: Path):
    began = tmp_path / "began"
    os.mkfifo(began)
    endless = scenario(acting(tmp_path, f'{{ fclose(fopen("{began}", "w")); for (;;) {{}} }}'))
    cancel = _core.Cancel()

    def stop_in_the_loop() -> None:
        began.read_bytes()
        cancel.set()

    threading.Thread(target=stop_in_the_loop, daemon=True).start()
    with pytest.raises(KeyboardInterrupt):
        elephan.run(endless, cancel=cancel, isolate=True)

    def stop(_: float) -> None:
        raise RuntimeError("enough")

    with pytest.raises(RuntimeError, match="enough"):
        elephan.run_many([endless, endless], progress=stop, isolate=True)


def test_the_process_of_a_run_ends_with_its_caller():
    document = scenario("reno", duration="100000 s").document
    text = f"import elephan; run = elephan.Scenario({document!r})\n"
    text += "elephan.run(run, isolate=True, progress=lambda _: print(flush=True))"
    with subprocess.Popen([sys.executable, "-c", text], stdout=subprocess.PIPE) as caller:
        assert caller.stdout is not None
        # The run computes.
        assert caller.stdout.readline()
        (child,) = map(int, Path(f"/proc/{caller.pid}/task/{caller.pid}/children").read_text().split())
        run = os.pidfd_open(child)
        caller.kill()
    # Readable when it has ended.
    select.select([run], [], [])
    os.close(run)


def test_a_comparison_goes_on_without_the_algorithm_that_crashes(crash: str, tmp_path: Path):
    line = f"compare --rate 20Mbit/s --rtt 40ms --duration 21s --repeat 1 --out {tmp_path}/out --cc"
    done = typed(f"{line} reno,{crash} --isolate")
    assert done.returncode == 1
    assert done.stderr == f"{crash}: expected a run to its end, found SIGSEGV in its process\n"
    assert "reno" in done.stdout
    assert "acts.c" not in done.stdout
    assert (tmp_path / "out" / "table.md").is_file()
    alone = typed(f"{line} {crash} --isolate --force")
    assert (alone.returncode, alone.stdout) == (2, "")
    # As the documentation tells, without it the algorithm is tried first, and the command crashes where it does so later.
    tried = typed(f"{line} reno,{crash} --force")
    assert (tried.returncode, tried.stdout, tried.stderr) == (2, "", done.stderr)
    late = acting(tmp_path, "*(volatile int *)0 = 1", 100)
    crashes = subprocess.run([ELEPHAN, *line.split(), f"reno,{late}", "--force"], capture_output=True, check=False)
    assert crashes.returncode == -signal.SIGSEGV


def test_a_run_and_a_sweep_tell_a_crash(crash: str, tmp_path: Path):
    file = tmp_path / "mine.toml"
    file.write_text(
        'name = "mine"\nduration = "3 s"\n[path]\nrate = "20 Mbit/s"\nrtt = "40 ms"\nbuffer = "50% bdp"\n'
        f'[[flow]]\ncc = "reno"\n[sweep]\n"flow.cc" = ["reno", "{crash}", "cubic"]\nrepeat = 2\n'
    )
    tried = call("sweep", str(file), "--out", f"{tmp_path}/sweep")
    assert (tried.returncode, tried.stderr) == (
        2,
        f"{crash}: expected a run to its end, found SIGSEGV in its process\n",
    )
    assert elephan.Dataset(tmp_path / "sweep").index().is_empty()
    done = call("sweep", str(file), "--out", f"{tmp_path}/sweep", "--isolate")
    assert done.returncode == 1
    assert done.stderr.count("SIGSEGV in its process") == 2
    assert "6 new, 0 reused, 2 failed" in done.stdout
    rows = elephan.Dataset(tmp_path / "sweep").runs()
    assert rows["error"].null_count() == 4
    again = call("sweep", str(file), "--out", f"{tmp_path}/sweep", "--isolate")
    assert "0 new, 6 reused, 2 failed" in again.stdout
    one = typed(f"run {file} --set sweep={{}} --set flow.cc={crash} --isolate --out {tmp_path}/one")
    assert (one.returncode, one.stdout) == (2, "")
    assert "found SIGSEGV in its process" in one.stderr
    assert not (tmp_path / "one").exists()
