"""Links that follow a trace: files, results folders, sweeps, engines."""

import hashlib
import json
import math
import random
from pathlib import Path

import pytest
from command_line import call

import elephan
from elephan import ScenarioError
from elephan.api import cellular
from elephan.api.scenario import copy_examples
from elephan.engines import linux
from elephan.engines.run import run
from elephan.studies.sweeps.columns import described, kind_of

EXAMPLES = Path("python/elephan/examples")
TOML = """
duration = "8 s"
path = { rate = "8 Mbit/s", rtt = "40 ms", buffer = "100 packets", trace = "TRACE" }
flow = [{ cc = "cubic" }]
measure.from = "2 s"
"""


@pytest.fixture
def scenario(tmp_path):
    """A scenario beside two traces of 6 Mbit/s: half of the time at 12, and by opportunities."""
    (tmp_path / "half.csv").write_text("time (ms),rate (Mbit/s)\n0,12\n10,0\n20,\n")
    (tmp_path / "half.down").write_text("2\n4\n5\n8\n")
    path = tmp_path / "x.toml"
    path.write_text(TOML.replace("TRACE", "half.csv"))
    return path


def test_the_trace_of_a_mobile_network_is_the_same_everywhere(tmp_path):
    digest = "06502e9eaf679d61c59f5c5b4fcd960f59284026f57c502febe343496c1be13c"
    assert hashlib.sha256(cellular.text().encode()).hexdigest() == digest
    document = elephan.load("cellular").document
    assert document["path"]["trace"]["source"] == "cellular.down"
    # The example, its file in a checkout, and its copy are one scenario.
    copy_examples(tmp_path / "mine")
    for file in (EXAMPLES / "cellular.toml", tmp_path / "mine" / "cellular.toml"):
        assert elephan.load(file).document == document


def test_the_last_digits_of_a_logarithm_do_not_matter(monkeypatch):
    """The C library's may differ from another's by the last bit; here they differ by a thousand times as much."""
    expected, draw = cellular.opportunities(), random.Random(1)
    for name in ("log", "exp", "sin", "cos"):
        exact = getattr(math, name)
        monkeypatch.setattr(cellular.math, name, lambda x, exact=exact: exact(x) * (1 + draw.choice((-2e-13, 2e-13))))
    assert cellular.opportunities() == expected


def test_another_trace_replaces_that_of_the_example(scenario):
    other = elephan.load("cellular", {"path.trace": str(scenario.parent / "half.down")})
    assert other.document["path"]["trace"]["opportunities"] == [2, 4, 5, 8]


# The satellite network's trace. It changes its routes every 15 s, as Starlink does (Mohan et al., WWW 2024). Then the delay
# jumps, the rate is another, and nothing is sent for a moment. Between, the delay drifts as the satellite moves. The ranges are
# our own choice.
SLOTS, SLOT_S, STEP_S = 8, 15.0, 0.5


def satellite(seed: int) -> str:
    """Rate, delay and losses over time."""
    draw = random.Random(seed)
    lines = ["time (s),rate (Mbit/s),delay (ms),loss (%)"]
    for slot in range(SLOTS):
        begin = slot * SLOT_S
        rate, delay, drift = draw.uniform(60, 180), draw.uniform(16, 32), draw.uniform(-0.3, 0.3)
        outage = draw.uniform(0.03, 0.12)
        lines.append(f"{begin:g},0,{delay:.2f},0")
        for step in range(round(SLOT_S / STEP_S)):
            since = step * STEP_S
            # Just before the next change the satellite is low over the horizon.
            loss = 0.2 if since >= SLOT_S - 1 else 0
            now = rate * draw.uniform(0.9, 1.1)
            lines.append(f"{begin + max(since, outage):.6g},{now:.1f},{delay + drift * since:.2f},{loss}")
    return "\n".join([*lines, f"{SLOTS * SLOT_S:g},0,,", ""])


def test_the_trace_of_a_satellite_network_is_drawn_from_its_model():
    assert (EXAMPLES / "satellite.csv").read_text() == satellite(1)


def test_a_results_folder_needs_the_file_no_more(scenario):
    first = run(elephan.load(scenario))
    document = json.loads(first.scenario.to_json())
    assert document["path"]["trace"]["source"] == "half.csv"
    (scenario.parent / "half.csv").unlink()
    again = run(elephan.Scenario(document))
    assert again.summary == first.summary
    assert again.flows.equals(first.flows)


@pytest.mark.parametrize("trace", ["half.csv", "half.down"])
def test_utilisation_is_relative_to_the_trace(scenario, trace):
    summary = run(elephan.load(scenario, {"path.trace": trace})).summary
    assert summary.links[0].utilisation == pytest.approx(1, abs=0.02)
    assert summary.goodput_bit_s == pytest.approx(6e6 * 1448 / 1500, rel=0.03)


def test_a_sweep_calls_traces_by_their_files(scenario):
    text = (
        scenario.read_text()
        + '[sweep]\n"path.trace" = ["half.csv", "half.down", { file = "half.csv", loop = false }]\n'
    )
    scenario.write_text(text)
    points = elephan.load(scenario).expand()
    kinds = {"path.trace": kind_of([settings["path.trace"] for _, settings in points])}
    shown = [described(settings, kinds, point.document)["path.trace"] for point, settings in points]
    assert shown == ["half.csv", "half.down", "half.csv once"]


def test_the_fluid_model_refuses_a_trace(scenario):
    loaded = elephan.load(scenario, {"engine": "model"})
    with pytest.raises(ScenarioError, match=r'path\.trace: engine "model": expected links that do not change'):
        run(loaded)


def test_the_program_names_file_and_line(scenario):
    (scenario.parent / "half.csv").write_text("time (ms),rate (Mbit/s)\n0,12\n0,fast\n")
    done = call("scenario", "check", scenario)
    assert done.returncode == 2
    assert "half.csv: line 3.rate: expected a rate" in done.stderr


@pytest.mark.realtime
@pytest.mark.usefixtures("machine")
@pytest.mark.parametrize("trace", ["half.csv", "half.down"])
def test_the_running_kernel_sees_the_same_links(scenario, trace, deviation):
    ran = linux.run(elephan.load(scenario, {"path.trace": trace, "engine": "linux"}))
    simulated = run(elephan.load(scenario, {"path.trace": trace, "tcp.profile": "linux-6"}))
    because = ran.provenance["quality"]["invalid_because"]
    utilisation = ran.summary.links[0].utilisation - simulated.summary.links[0].utilisation
    deviation("utilisation", utilisation, within=0.04, because=because, discrete=True)
    goodput = ran.summary.goodput_bit_s / simulated.summary.goodput_bit_s - 1
    deviation("goodput", goodput, within=0.05, because=because, discrete=True)
