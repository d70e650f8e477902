"""What `elephan host` measures, concludes and leaves behind."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

import elephan
from elephan import _core
from elephan.base.errors import FailedError
from elephan.cli import app
from elephan.paths import survey
from elephan.paths.host import Figure, Host, Limit, advice, snippet, tables
from elephan.paths.settings import Demand, Interface, device_settings, kernel_settings
from elephan.studies import bench
from elephan.studies.statistics import Estimate

LONG = Demand(10e9, 82e-3)
STORED = {
    "net.ipv4.tcp_rmem": "4096 131072 6291456",
    "net.ipv4.tcp_wmem": "4096 16384 4194304",
    "net.core.rmem_max": "212992",
    "net.core.netdev_max_backlog": "1000",
    "net.core.netdev_budget_usecs": "8000",
    "net.ipv4.tcp_sack": "1",
    "net.ipv4.tcp_mtu_probing": "2",
    "net.ipv4.tcp_congestion_control": "cubic",
}
TOLD = {
    "driver": "some",
    "coalesce": None,
    "rings": {"receive": 256, "receive_most": 4096, "send": 256, "send_most": 256},
    "offloads": [["tx", True], ["tso", None]],
}
DEVICE = Interface("eth7", 1500, 1e9, 1000, "fq", TOLD)
PROGRAM = [sys.executable, "-c", "from elephan.cli import main; main()"]


def has_namespaces():
    return sys.platform == "linux" and bench.namespaces()[0] is not None


linux = pytest.mark.skipif(sys.platform != "linux", reason="it measures Linux")


@given(st.floats(1e-12, 1e-6), st.floats(1e-7, 1e-2), st.integers(3, 9), st.integers(0, 2**32))
def test_a_line_gives_back_its_slope_and_intercept(slope, intercept, points, seed):
    xs = [64.0 + 1000.0 * k for k in range(points)]
    exact = bench.Line.of(xs, [intercept + slope * x for x in xs])
    assert exact.slope.mean == pytest.approx(slope, rel=1e-6, abs=1e-12 * intercept)
    assert exact.intercept.mean == pytest.approx(intercept, rel=1e-6, abs=1e-6 * slope * xs[-1])
    # A shift up and down by the same amount changes neither by more than its own interval.
    away = [intercept + slope * x + (-1) ** (k + seed) * 0.01 * intercept for k, x in enumerate(xs)]
    bent = bench.Line.of(xs, away)
    assert bent.slope.low <= slope <= bent.slope.high
    assert bent.intercept.low <= intercept <= bent.intercept.high


def test_a_line_needs_points_at_two_places():
    for xs in ([1.0, 2.0], [1.0, 1.0, 1.0]):
        with pytest.raises(ValueError, match="expected three points or more at two places or more"):
            bench.Line.of(xs, [1.0] * len(xs))


def test_each_setting_is_judged_by_what_the_path_needs():
    found = {one.name: one for one in kernel_settings(LONG, STORED.get)}
    # 10 Gbit/s x 82 ms are 102.5 MB, and a buffer holds half of itself as data.
    assert found["net.ipv4.tcp_rmem"].needed == "... 205000000"
    assert found["net.ipv4.tcp_rmem"].command == "sysctl -w net.ipv4.tcp_rmem='4096 131072 205000000'"
    assert found["net.core.rmem_max"].suffices is False
    # 10 Gbit/s are 833,333 packets a second, and the kernel takes up to 8 ms.
    assert found["net.core.netdev_max_backlog"].needed == "6667"
    assert found["net.ipv4.tcp_sack"].suffices
    assert found["net.ipv4.tcp_sack"].command == ""
    assert found["net.ipv4.tcp_mtu_probing"].suffices
    assert found["net.ipv4.tcp_congestion_control"].suffices is None
    assert "net.core.wmem_max" not in found, "this kernel does not have it"
    assert all(one.why for one in found.values())
    short = {one.name: one for one in kernel_settings(Demand(1e8, 1e-3), STORED.get)}
    assert short["net.ipv4.tcp_rmem"].suffices
    without = {one.name: one for one in kernel_settings(None, STORED.get)}
    assert without["net.ipv4.tcp_rmem"].suffices is None


def test_a_ring_is_to_be_as_large_as_the_device_has_it():
    found = {one.name: one for one in device_settings(DEVICE, LONG, STORED.get)}
    assert found["eth7: receive ring"].command == "ethtool -G eth7 rx 4096"
    assert found["eth7: speed"].suffices is False
    assert found["eth7: txqueuelen"].suffices
    none = replace(DEVICE, speed_bit_s=None, told=TOLD | {"rings": None})
    assert [one.name for one in device_settings(none, LONG, STORED.get)] == ["eth7: txqueuelen"]
    assert none.text["speed"] == none.text["rings (rx, tx)"] == "not told"


def made_up():
    host = Host(devices=[DEVICE], settings=kernel_settings(LONG, STORED.get))
    host.figures = [Figure.of("host.packet", "a packet", "s", [5e-7, 7e-7], "how")]
    host.limits = [Limit("the path", Estimate.of([1e10])), Limit("the memory", Estimate.of([4e9, 6e9]))]
    return host


def test_the_least_limit_is_the_conclusion_and_what_fails_has_a_command():
    host = made_up()
    assert host.conclusion.startswith("this host can send 5")
    assert host.conclusion.endswith(" Gbit/s, limited by the memory")
    lines = advice(host)
    assert "    sysctl -w net.core.rmem_max=205000000" in lines
    assert not any("tcp_sack" in line for line in lines)
    for table in tables(host):
        assert all(len(row) == len(table.head) for row in table.rows)


def test_the_snippet_is_a_host_of_a_scenario(tmp_path):
    path = tmp_path / "slow.toml"
    text = snippet(made_up())
    path.write_text('duration = "1 s"\npath = { rate = "10 Mbit/s", rtt = "10 ms" }\nflow = [{ cc = "reno" }]\n' + text)
    host = elephan.load(path).document["host"]
    assert (host["data"], host["ack"], host["max_backlog"]) == ("600.0 ns", "600.0 ns", 256)
    nothing = snippet(Host(left_out=["everything between namespaces: no"]))
    assert nothing.count("\n#") >= 1
    assert "[host]" not in nothing.split("\n")


@linux
@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--rate", "10Gbit/s"], "--rtt: expected both --rate and --rtt"),
        (["--rate", "fast", "--rtt", "1 ms"], '--rate: expected a rate above zero such as 500Mbit/s, found "fast"'),
        (["--rate", "0 bit/s", "--rtt", "1 ms"], "--rate: expected a rate"),
        (["--disk-bytes", "12"], '--disk-bytes: expected a number of bytes above zero such as 10GB, found "12"'),
        (
            ["--rate", "1 Gbit/s", "--rtt", "1 Gbit/s"],
            '--rtt: expected a time above zero such as 100ms, found "1 Gbit/s"',
        ),
        (["--disk-bytes", "18000000000 GB"], "--disk-bytes: expected a number of bytes"),
        (["--disk-bytes", "1 s"], "--disk-bytes: expected a number of bytes"),
    ],
)
def test_a_wrong_option_is_named(options, said):
    with pytest.raises(elephan.ScenarioError) as error:
        CliRunner().invoke(app, ["host", *options], catch_exceptions=False)
    assert said in str(error.value)


@linux
def test_a_path_that_is_a_file_is_read_and_excludes_the_options(tmp_path):
    path = tmp_path / "path.toml"
    path.write_text('duration = "1 s"\npath = { rate = "10 Gbit/s", rtt = "82 ms" }\nflow = [{ cc = "reno" }]\n')
    from elephan.cli import host as command

    assert command._demand(None, None, path) == LONG
    with pytest.raises(elephan.ScenarioError, match="--path: expected it instead of --rate and --rtt"):
        command._demand("1 Gbit/s", None, path)


def test_a_measurement_that_does_not_exist_is_an_error():
    if not hasattr(_core, "measure_host"):
        with pytest.raises(FailedError, match="host: expected Linux"):
            bench.measure({"what": "memory"})
        return
    with pytest.raises(elephan.ScenarioError, match="host: expected a measurement"):
        bench.measure({"what": "nothing"})
    with pytest.raises(OSError, match="nosuchdevice"):
        bench.measure({"what": "device", "name": "nosuchdevice"})


@pytest.fixture
def short(tmp_path, monkeypatch):
    """The words of the command with its tests in short, and where it writes."""
    monkeypatch.setattr(survey, "QUICK", survey.Scale(2, 0.02, 0.05, 1.0, 20))
    disk, out = tmp_path / "disk", tmp_path / "out"
    disk.mkdir()
    (disk / "mine").write_text("kept")
    words = ["host", "--quick", "--disk", str(disk), "--disk-bytes", "2 MB", "--rate", "1Gbit/s", "--rtt", "10ms"]
    return [*words, "--out", str(out)], disk, out


@linux
def test_the_whole_command_in_short(short):
    words, disk, out = short
    done = CliRunner().invoke(app, words, catch_exceptions=False)
    assert done.exit_code == 0, done.output
    assert "budget: " in done.output
    assert done.output.splitlines()[-1].startswith("this host can send ")
    assert [path.name for path in disk.iterdir()] == ["mine"]
    assert (disk / "mine").read_text() == "kept"
    found = json.loads((out / "host.json").read_text())
    assert found["limits"]
    assert min(one["bit_s"] for one in found["limits"]) <= 1e9, "the path is one of them"
    if not has_namespaces():
        assert any("namespaces" in one for one in found["left_out"])
    # The folder is ours, and replaced only on demand.
    with pytest.raises(FileExistsError):
        CliRunner().invoke(app, words, catch_exceptions=False)


@linux
@pytest.mark.realtime
def test_the_figures_of_the_whole_command_are_possible(short):
    """Invariants of what it finds, whatever this machine is."""
    words, _, out = short
    assert CliRunner().invoke(app, words, catch_exceptions=False).exit_code == 0
    figures = {one["key"]: one for one in json.loads((out / "host.json").read_text())["figures"]}
    for one in figures.values():
        # A stream of 50 ms may pass before a busy machine begins with it; lines have no samples of their own.
        assert len(one["samples"]) <= 2, one["key"]
        if len(one["samples"]) == 2:
            assert one["low"] <= one["mean"] <= one["high"]
        if one["samples"]:
            # A datagram's time is a difference from that of an idle device: short samples may be below zero.
            assert min(one["samples"]) > 0 or one["key"].startswith("wait.cpu"), one["key"]
    if has_namespaces():
        assert figures["host.packet"]["mean"] > 0
        assert "[host]" in (out / "host.toml").read_text()


@linux
def test_a_file_is_only_read(tmp_path):
    path = tmp_path / "data"
    path.write_bytes(os.urandom(3 << 20))
    before, stamp = path.read_bytes(), path.stat().st_mtime_ns
    plan = survey.Plan.of(quick=True, disk=path, disk_bytes=10**9, demand=None)
    assert plan.disk_bytes == 3 << 20
    assert not any(one.get("write") for one in plan.passes.values())
    left_out: list[str] = []
    assert survey._disk(plan, left_out)
    assert (path.read_bytes(), path.stat().st_mtime_ns) == (before, stamp)


def writing(folder, size):
    """A process that writes to a folder for a long time, and says when it begins."""
    script = (
        "import sys; from elephan.studies import bench; print('ready', flush=True); "
        "bench.measure({'what': 'disk', 'place': sys.argv[1], 'bytes': int(sys.argv[2]), 'seconds': 60.0, "
        "'passes': [{'write': True, 'block': 1 << 20, 'threads': 1}] * 1000})"
    )
    one = subprocess.Popen(
        [sys.executable, "-c", script, str(folder), str(size)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert one.stdout is not None
    assert one.stdout.readline() == "ready\n"
    return one


@pytest.mark.slow
@linux
@pytest.mark.parametrize("which", [signal.SIGKILL, signal.SIGINT])
def test_nothing_is_left_when_a_test_of_writing_ends_by_a_signal(tmp_path, which):
    for wait_s in (0.0, 0.1, 0.4):
        with writing(tmp_path, 8 << 20) as one:
            time.sleep(wait_s)
            one.send_signal(which)
            one.wait(120)
            assert one.returncode != 0
        assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
@linux
@pytest.mark.skipif(not os.access("/dev/loop-control", os.W_OK), reason="needs root and loop devices")
def test_a_killed_test_of_read_ahead_leaves_no_device_and_no_file(tmp_path):
    def attached():
        backing = Path("/sys/block").glob("loop*/loop/backing_file")
        return [text for one in backing if str(tmp_path) in (text := one.read_text())]

    script = (
        "import sys; from elephan.studies import bench; "
        "bench.measure({'what': 'read_ahead', 'folder': sys.argv[1], 'bytes': 8 << 20, 'windows': [4096] * 100_000, "
        "'block': 4096, 'seconds': 60.0})"
    )
    with subprocess.Popen([sys.executable, "-c", script, str(tmp_path)], stderr=subprocess.DEVNULL) as one:
        until = time.monotonic() + 120
        while not attached() and one.poll() is None and time.monotonic() < until:
            time.sleep(0.02)
        if one.poll() is not None:
            pytest.skip("no loop device can be made here")
        assert attached()
        one.kill()
        one.wait(120)
    until = time.monotonic() + 120
    while attached() and time.monotonic() < until:
        time.sleep(0.05)
    assert attached() == []
    assert list(tmp_path.iterdir()) == []


@linux
@pytest.mark.skipif(
    not hasattr(os, "geteuid") or os.geteuid() != 0, reason="needs root, to mount a small disk for itself"
)
def test_a_full_disk_is_one_line_and_its_space_is_given_back(tmp_path):
    """A disk of 4 MiB in a mount namespace of the test: it is gone with the process."""
    script = """
import os, sys
from pathlib import Path
from elephan.studies import bench
place = Path(sys.argv[1])
free = lambda: os.statvfs(place).f_bavail
before = free()
try:
    bench.measure({"what": "disk", "place": str(place), "bytes": 64 << 20, "seconds": 60.0, "passes": []})
except OSError as error:
    print(error.errno, error.strerror)
print(free() == before, list(place.iterdir()))
"""
    mounted = f'mount -t tmpfs -o size=4m none "{tmp_path}" && exec "$@"'
    command = ["unshare", "--mount", "--propagation", "private", "--", "sh", "-c", mounted, "sh"]
    done = subprocess.run(
        [*command, sys.executable, "-c", script, str(tmp_path)], capture_output=True, text=True, check=False
    )
    if "unshare" in done.stderr or "mount:" in done.stderr:
        pytest.skip(done.stderr.strip())
    lines = done.stdout.splitlines()
    assert lines[0] == f"28 {tmp_path}: writing: No space left on device", done.stderr
    assert lines[1] == "True []"


# A signal comes in the midst of a measurement. Nothing of Python runs meanwhile, and the thread that sends it gets the
# interpreter's lock when the measurement has released it, and not before.
INTERRUPTED = """
import queue, signal, sys, threading
from elephan import _core
from elephan.cli import main

sys.setswitchinterval(1000)
begun, taken, measure = queue.SimpleQueue(), [], _core.measure_host
send = lambda: (begun.get(), signal.pthread_kill(threading.main_thread().ident, signal.SIGINT))
threading.Thread(target=send, daemon=True).start()
def counted(request):
    taken.append(request)
    if len(taken) == {number}:
        begun.put(None)
    return measure(request)
_core.measure_host = counted
main()
"""


@linux
@pytest.mark.parametrize("number", [1, 4])
def test_ctrl_c_ends_the_command_in_the_midst_of_a_measurement(tmp_path, number):
    command = [sys.executable, "-c", INTERRUPTED.replace("{number}", str(number))]
    options = ["--disk", str(tmp_path), "--disk-bytes", "100 MB", "--out", str(tmp_path / "out")]
    done = subprocess.run([*command, "host", *options], capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 130
    assert done.stderr.startswith("budget: ")
    assert done.stderr.endswith("\ninterrupted; nothing was written\n")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.realtime
@linux
@pytest.mark.skipif(
    not shutil.which("setpriv") or os.geteuid() != 0, reason="needs root and setpriv, to give up privileges"
)
def test_without_privileges_a_user_namespace_is_tried_and_otherwise_the_reason_is_said():
    script = """
from elephan.studies import bench
by, why = bench.namespaces()
print(why if by is None else by({"what": "tcp", "namespaces": True, "streams": 1, "seconds": 0.1})["bytes"] > 0)
"""
    give_up = ["setpriv", "--bounding-set=-all", "--inh-caps=-all", "--"]
    done = subprocess.run([*give_up, sys.executable, "-c", script], capture_output=True, text=True, check=True)
    # Either it works, or it says what was refused, and why the way around did not work either.
    assert done.stdout == "True\n" or "; a user namespace: " in done.stdout
