"""The links of a scenario between two namespaces, for programs of one's own."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from command_line import ELEPHAN

from elephan import ScenarioError, kernel
from elephan.api.scenario import Scenario, dumbbell, flow
from elephan.engines.emulate import FAR, links

# A server that sends back what comes, and a client that prints the shortest of twenty round-trip times, in ms.
ECHO = "import socket; s = socket.socket(type=2); s.bind(('', 7)); print(flush=True)\nwhile True: s.sendto(*s.recvfrom(2048))"
CLIENT = f"""
import socket, time
times = []
with socket.socket(type=2) as s:
    s.settimeout(5)
    for _ in range(20):
        began = time.monotonic()
        s.sendto(bytes(972), ({FAR!r}, 7))
        s.recvfrom(2048)
        times.append(time.monotonic() - began)
print(1e3 * min(times))
"""
PATH = dumbbell(rate="10 Mbit/s", rtt="40 ms", flows=[flow("reno")], duration="1 s")
# The delay there and back, and the time that 1000 bytes take each way.
ROUND_TRIP_MS = 40 + 2 * 0.8


def test_without_root_there_is_one_clear_line(monkeypatch):
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    with pytest.raises(kernel.KernelError, match="expected root"), links(PATH):
        pass


def test_a_sweep_is_no_path():
    swept = Scenario({**PATH.document, "sweep": {"seed": [1, 2]}})
    with pytest.raises(ScenarioError, match="scenario: sweep: expected none"), links(swept):
        pass


@pytest.mark.realtime
@pytest.mark.usefixtures("root")
def test_programs_see_the_delay_and_the_rate_of_the_links(deviation):
    with links(PATH) as emulated:
        server = subprocess.Popen([*emulated.far, sys.executable, "-c", ECHO], stdout=subprocess.PIPE)
        try:
            server.stdout.readline()
            client = subprocess.run(
                [*emulated.near, sys.executable, "-c", CLIENT], capture_output=True, text=True, check=True, timeout=120
            )
        finally:
            server.kill()
            server.wait()
            server.stdout.close()
    # Twenty datagrams there and back.
    assert emulated.quality["packets"] >= 40
    # The programs themselves take half a millisecond.
    because = emulated.quality["invalid_because"]
    deviation("shortest round-trip time, ms", float(client.stdout) - ROUND_TRIP_MS, above=0, below=0.5, because=because)


@pytest.mark.slow
@pytest.mark.usefixtures("root")
def test_an_error_within_the_block_ends_the_links():
    entered = []

    def fails():
        with links(PATH) as held:
            entered.append(Path(held.near[1].removeprefix("--net=")).stat())
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fails()
    assert entered[0].st_ino not in [file.stat().st_ino for file in Path("/proc/self/fd").iterdir() if file.exists()]


@pytest.mark.slow
@pytest.mark.usefixtures("root")
def test_the_command_line_gives_the_exit_code_and_ends_at_ctrl_c(tmp_path):
    file = tmp_path / "path.json"
    file.write_text(PATH.to_json())
    line = [ELEPHAN, "path", "emulate", file]
    ran = subprocess.run(
        [*line, "--", "sh", "-c", "$FAR cat /proc/net/fib_trie; exit 7"], capture_output=True, text=True, check=False
    )
    assert (ran.returncode, FAR in ran.stdout) == (7, True)
    with subprocess.Popen(line, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as held:
        assert held.stdout.readline().startswith("near host, 10.0.0.1: nsenter --net=/proc/")
        held.send_signal(signal.SIGINT)
        _, said = held.communicate()
    assert (held.returncode, said.splitlines()[0]) == (130, "interrupted; the links are gone")
