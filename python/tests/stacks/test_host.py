"""What `elephan path host` measures, concludes and leaves behind."""

import json
import os
import shutil
import subprocess
import sys
from dataclasses import replace

import pytest
from command_line import INTERRUPTED
from typer.testing import CliRunner

import elephan
from elephan import _core
from elephan.base.errors import FailedError
from elephan.cli import app
from elephan.paths import survey
from elephan.paths.host import Figure, Host, Limit, advice, snippet, tables
from elephan.paths.settings import Demand, Interface, device_settings, kernel_settings
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


def has_namespaces():
    return sys.platform == "linux" and survey.namespaces()[0] is not None


linux = pytest.mark.skipif(sys.platform != "linux", reason="it measures Linux")


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
    host.figures = [Figure("host.packet", "a packet", "s", [5e-7, 7e-7], "how")]
    host.limits = [Limit("the path", Estimate.of([1e10])), Limit("the device eth7", Estimate.of([4e9, 6e9]))]
    return host


def test_the_least_limit_is_the_conclusion_and_what_fails_has_a_command():
    host = made_up()
    assert host.conclusion.startswith("this host can send 5")
    assert host.conclusion.endswith(" Gbit/s, limited by the device eth7")
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
            survey.measure({"what": "ping"})
        return
    with pytest.raises(elephan.ScenarioError, match="host: expected a measurement"):
        survey.measure({"what": "nothing"})
    with pytest.raises(OSError, match="nosuchdevice"):
        survey.measure({"what": "device", "name": "nosuchdevice"})


@pytest.fixture
def short(tmp_path, monkeypatch):
    """The words of the command with its tests in short, and where it writes."""
    monkeypatch.setattr(survey, "QUICK", (2, 0.05, 20))
    out = tmp_path / "out"
    return ["path", "host", "--quick", "--rate", "1Gbit/s", "--rtt", "10ms", "--out", str(out)], out


@linux
def test_the_whole_command_in_short(short):
    words, out = short
    done = CliRunner().invoke(app, words, catch_exceptions=False)
    assert done.exit_code == 0, done.output
    assert "budget: " in done.output
    assert done.output.splitlines()[-1].startswith("this host can send ")
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
    words, out = short
    assert CliRunner().invoke(app, words, catch_exceptions=False).exit_code == 0
    figures = {one["key"]: one for one in json.loads((out / "host.json").read_text())["figures"]}
    for one in figures.values():
        assert len(one["samples"]) == 2, one["key"]
        assert one["low"] <= one["mean"] <= one["high"]
        # A few requests need not tell that more bytes take more time.
        assert min(one["samples"]) > 0 or one["key"] == "latency.slope", one["key"]
    if has_namespaces():
        assert figures["host.packet"]["mean"] > 0
        assert "[host]" in (out / "host.toml").read_text()


# A signal comes in the midst of a measurement, in which nothing of Python runs.
MEASURED = """
from elephan import _core
from elephan.cli import main

taken, measure = [], _core.measure_host
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
    command = [sys.executable, "-c", INTERRUPTED + MEASURED.replace("{number}", str(number))]
    command += ["path", "host", "--out", str(tmp_path / "out")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
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
from elephan.paths import survey
by, why = survey.namespaces()
print(why if by is None else by({"what": "tcp", "namespaces": True, "streams": 1, "seconds": 0.1})["bytes"] > 0)
"""
    give_up = ["setpriv", "--bounding-set=-all", "--inh-caps=-all", "--"]
    done = subprocess.run([*give_up, sys.executable, "-c", script], capture_output=True, text=True, check=True)
    # Either it works, or it says what was refused, and why the way around did not work either.
    assert done.stdout == "True\n" or "; a user namespace: " in done.stdout
