"""The whole loop of docs/paths.md, by its own commands: probe, host, recommend, transfer, report, fit.

The probe measures its path in virtual time, too.
"""

import os
import re
import shutil
import subprocess
from pathlib import Path
from types import SimpleNamespace

import pytest
from command_line import ELEPHAN

from elephan import _core
from elephan.api.scenario import load
from elephan.paths.estimates import read
from elephan.paths.probe import budget, measure, session

PAGE = Path("docs/paths.md")
SCENARIO = Path("python/elephan/examples/real-path.toml")
# What the scenario says. If the emulator is late, it prints a line for each reason.
RATE_BIT_S, RTT_S, BUFFER_BYTES, LOSS = 50e6, 0.040, 125_000, 2e-4
LATE = "the links did not keep to their schedule"


def test_in_virtual_time_the_probe_finds_the_path_of_the_page(monkeypatch):
    most_bytes, most_s, algorithms = 200_000_000, 40.0, ["cubic", "reno"]
    virtual = _core.VirtualProbe(load(SCENARIO), most_bytes, most_s, host_rate=2 * 10**9)
    monkeypatch.setattr(session, "time", SimpleNamespace(sleep=virtual.sleep))
    client = session.Session(virtual, most_bytes, most_s)
    shares = budget.plan(most_bytes, most_s, algorithms)
    measured = measure.measure(client, shares, algorithms, "the page", lambda _: None)
    estimates = measured.estimates
    assert estimates.rate_bit_s.value == pytest.approx(RATE_BIT_S, rel=1e-9)
    assert measured.figures["capacity_bit_s"].value == pytest.approx(RATE_BIT_S, rel=1e-9)
    assert estimates.base_rtt_s.value == pytest.approx(RTT_S, rel=1e-9)
    assert estimates.buffer_bytes.value == pytest.approx(BUFFER_BYTES, rel=1e-9)
    # The interval is as wide as a packet before and after.
    assert BUFFER_BYTES - 1500 <= estimates.buffer_bytes.low < BUFFER_BYTES < estimates.buffer_bytes.high
    assert estimates.buffer_bytes.high <= BUFFER_BYTES + 2 * 1500
    assert estimates.loss.low <= LOSS <= estimates.loss.high
    assert estimates.mtu_bytes.value == 1500
    # TCP is the only test that virtual time does not have.
    assert estimates.goodput_bit_s == {}
    assert [note.partition(":")[0] for note in estimates.notes] == [
        "tcp cubic", "tcp cubic back", "tcp reno", "tcp reno back",
    ]  # fmt: skip


@pytest.mark.realtime
@pytest.mark.usefixtures("root")
@pytest.mark.skipif(shutil.which("rsync") is None, reason="needs rsync")
def test_the_commands_of_the_page_run_in_this_order_and_the_path_is_found(tmp_path, deviation):
    scenario, page = SCENARIO.resolve(), PAGE.read_text(encoding="utf-8")
    script = "set -eu\ntrap 'kill $(jobs -p) 2>/dev/null || true' EXIT\n"
    script += "".join(re.findall(r"^```sh\n(.*?)^```", page, re.DOTALL | re.MULTILINE))
    environment = {**os.environ, "PATH": f"{ELEPHAN.parent}:{os.environ['PATH']}"}
    said = tmp_path / "said"
    with said.open("w") as file:
        ran = subprocess.run(
            [ELEPHAN, "path", "emulate", scenario, "--", "bash", "-c", script],
            cwd=tmp_path, env=environment, stdout=file, stderr=subprocess.STDOUT,
            stdin=subprocess.DEVNULL, timeout=300, check=False,
        )  # fmt: skip
    told = said.read_text()
    assert ran.returncode == 0, told[-3000:]
    assert (tmp_path / "received/data").read_bytes() == (tmp_path / "data").read_bytes()
    assert (tmp_path / "path/report.html").stat().st_size > 100_000
    # What `elephan path host` measured is in the scenario that `elephan path recommend` read.
    costs = load(tmp_path / "path/path.toml").document["host"]
    assert costs["data"] in (tmp_path / "host/host.toml").read_text()
    because = [line for line in told.splitlines() if LATE in line]
    probed, fitted = read(tmp_path / "path"), read(tmp_path / "fitted")
    for name, estimate, truth, share in (
        ("rate", probed.rate_bit_s, RATE_BIT_S, 0.03),
        ("base round-trip time", probed.base_rtt_s, RTT_S, 0.01),
        ("buffer", probed.buffer_bytes, BUFFER_BYTES, 0.15),
        ("rate of the transfer", fitted.rate_bit_s, RATE_BIT_S, 0.03),
        ("base round-trip time of the transfer", fitted.base_rtt_s, RTT_S, 0.01),
    ):
        value = estimate and estimate.value
        deviation(name, None if value is None else value / truth - 1, within=share, because=because)
    # From 0 to 1 between the ends of its interval, which follow from counts.
    loss = probed.loss
    place = None if loss is None or loss.value is None else (LOSS - loss.low) / (loss.high - loss.low)
    deviation("the true loss in its interval", place, above=0, below=1, because=because, discrete=True)
