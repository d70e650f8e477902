"""Links that follow a trace: files, results folders, sweeps, engines."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

import elephan
from elephan import ScenarioError, kernel
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


def test_the_traces_of_the_examples_are_what_their_script_writes():
    sys.path.insert(0, "scripts")
    try:
        import link_traces
    finally:
        sys.path.remove("scripts")
    assert (EXAMPLES / "cellular.down").read_text() == link_traces.mobile(255)
    assert (EXAMPLES / "satellite.csv").read_text() == link_traces.satellite(1)


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
    command = [Path(sys.executable).with_name("elephan"), "scenario", "check", scenario]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode != 0
    assert "half.csv: line 3.rate: expected a rate" in done.stdout + done.stderr


@pytest.mark.realtime
@pytest.mark.skipif(bool(kernel.missing()), reason="; ".join(kernel.missing()))
@pytest.mark.parametrize("trace", ["half.csv", "half.down"])
def test_the_running_kernel_sees_the_same_links(scenario, trace, deviation):
    ran = linux.run(elephan.load(scenario, {"path.trace": trace, "engine": "linux"}))
    simulated = run(elephan.load(scenario, {"path.trace": trace, "tcp.profile": "linux-6"}))
    because = ran.provenance["quality"]["invalid_because"]
    utilisation = ran.summary.links[0].utilisation - simulated.summary.links[0].utilisation
    deviation("utilisation", utilisation, within=0.04, because=because, discrete=True)
    goodput = ran.summary.goodput_bit_s / simulated.summary.goodput_bit_s - 1
    deviation("goodput", goodput, within=0.05, because=because, discrete=True)
