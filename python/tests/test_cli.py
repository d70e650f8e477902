"""The command line, as its users call it."""

import json
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from elephan import ScenarioError, dumbbell, flow, load
from elephan.cli import COMMANDS

EXAMPLES = sorted(Path("scenarios/examples").glob("*.toml"))
SMALL = """
duration = "3 s"
path = { rate = "10 Mbit/s", rtt = "20 ms", buffer = "20 packets" }
flow = [{ cc = "reno" }]
"""


def elephan(*arguments: str, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", "from elephan.cli import main; main()", *arguments]
    return subprocess.run(command, capture_output=True, text=True, cwd=cwd, check=False)


@pytest.fixture
def scenario(tmp_path: Path) -> Path:
    path = tmp_path / "small.toml"
    path.write_text(SMALL)
    return path


def test_version():
    assert elephan("--version").stdout.startswith("elephan 0.")


def test_run_writes_a_folder_and_prints_tables(scenario: Path, tmp_path: Path):
    done = elephan("run", str(scenario), "--out", str(tmp_path / "out"))
    assert done.returncode == 0, done.stderr
    assert "goodput" in done.stdout
    assert not list((tmp_path / "out").glob("*.png"))
    again = elephan("run", str(scenario), "--out", str(tmp_path / "out"))
    assert again.returncode == 2
    assert "--force" in again.stderr
    assert elephan("run", str(scenario), "--out", str(tmp_path / "out"), "--force").returncode == 0
    assert elephan("plot", str(tmp_path / "out"), "--what", "queue").returncode == 0
    assert (tmp_path / "out" / "queue.png").exists()


def test_a_run_says_that_it_samples_many_flows_less_often(scenario: Path, tmp_path: Path):
    many = ("run", str(scenario), "--set", "flow.count=1001", "--force", "--out", str(tmp_path / "out"))
    assert "sampled every 200 ms" in elephan(*many).stdout
    assert "sampled every" not in elephan(*many, "--set", "trace.interval=500ms").stdout


def test_only_the_simulator_has_threads(scenario: Path, tmp_path: Path):
    run = ("run", str(scenario), "--out", str(tmp_path / "out"), "--threads", "2")
    refused = elephan(*run, "--engine", "model")
    assert refused.returncode == 2
    assert refused.stderr == "threads: expected 1 with the engine model, found 2\n"
    assert not (tmp_path / "out").exists()
    assert elephan(*run).returncode == 0


def test_json_is_all_there_is_on_stdout(scenario: Path, tmp_path: Path):
    done = elephan(
        "run", str(scenario), "--json", "--seed", "7", "--set", "path.rtt=40ms", "--out", str(tmp_path / "o")
    )
    assert json.loads(done.stdout)["flows"][0]["label"] == "reno"
    assert json.loads((tmp_path / "o" / "run.json").read_text())["scenario"]["path"]["rtt"] == "40 ms"
    assert done.stderr == ""


def test_events_and_captures(scenario: Path, tmp_path: Path):
    done = elephan("run", str(scenario), "--trace", "events", "--pcap", "bottleneck", "--out", str(tmp_path / "o"))
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "o" / "events.parquet").exists()
    capture = tmp_path / "o" / "bottleneck.pcap"
    assert capture.read_bytes()[:4] == bytes.fromhex("4d3cb2a1")
    if shutil.which("tshark") is None:
        pytest.skip("tshark is not installed")
    fields = ["-T", "fields", "-e", "tcp.checksum.status", "-e", "ip.checksum.status", "-e", "_ws.malformed"]
    checks = ["-o", "tcp.check_checksum:TRUE", "-o", "ip.check_checksum:TRUE"]
    shown = subprocess.run(["tshark", "-r", str(capture), *checks, *fields], capture_output=True, text=True, check=True)
    lines = set(shown.stdout.splitlines())
    # 1 means good; 2 means unverified, because the payload is cut off.
    assert lines <= {"1\t1\t", "2\t1\t"}, lines


def test_a_shown_scenario_has_every_key_of_its_profile_and_those_of_the_file():
    shown = elephan("scenario", "show", "scenarios/engines/one-20.toml", "--set", "tcp.rto_variance_min=50ms")
    assert shown.returncode == 0, shown.stderr
    assert {"rack = true", 'window_reduction = "prr"', 'rto_variance_min = "50 ms"'} <= set(shown.stdout.splitlines())


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_every_example_runs(path: Path, tmp_path: Path):
    assert elephan("scenario", "check", str(path)).returncode == 0
    command = "sweep" if "[sweep]" in path.read_text() else "run"
    done = elephan(command, str(path), "--out", str(tmp_path / "out"))
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["run", "nowhere.toml"], "nowhere.toml: expected a file, found none"),
        (["run", "small.toml", "--set", "path.rtt"], "--set: expected KEY=VALUE, found 'path.rtt'"),
        (["run", "small.toml", "--set", "path.rtt=5"], 'small.toml: path.rtt: expected a time such as "82 ms", found 5'),
        (["scenario", "check", "small.toml", "--set", "path.rtt=5"], "small.toml: path.rtt: expected a time such as"),
        (["run", "small.toml", "--set", "flow.0.cc=warp"], "small.toml: flow.0.cc: expected one of tahoe"),
        (["run", "small.toml", "--trace", "all"], '--trace: expected "events", found "all"'),
        (["run", "small.toml", "--pcap", "x"], 'small.toml: trace.pcap: expected one of the links bottleneck'),
        (["run", "small.toml", "--colour"], "No such option"),
        (["compare", "--cc", "warp"], "scenario: flow.0.cc: expected one of tahoe"),
        (["compare", "--rate", "fast"], 'scenario: path.rate: expected a rate such as "250 Mbit/s", found "fast"'),
        (["cc", "show", "warp"], "cc: expected one of tahoe"),
        (["queue", "show", "warp"], "queue: expected one of droptail"),
        (
            ["run", "small.toml", "--set", "path.queue={ name = 'red', min_th = 9, max_th = 5 }"],
            "small.toml: path.queue.max_th: expected a number above min_th = 9, found 5",
        ),
        (["plot", "nowhere"], "nowhere: expected a results folder with run.json, found none"),
        (["run", "small.toml", "--set", "measure.interval=1ps"], "small.toml: measure.interval: expected at most 1e11 events"),
        (["sweep", "small.toml", "--set", "sweep.repeat=10000000"], "small.toml: sweep.repeat: expected at most 1e6 runs"),
        (["compare", "--rate", "900 Tbit/s", "--rtt", "1 us"], "scenario: path.rate: expected at most 1e11 events"),
    ],
)  # fmt: skip
def test_bad_input_is_one_clear_line_and_exit_code_2(arguments: list[str], message: str, scenario: Path):
    done = elephan(*arguments, cwd=scenario.parent)
    assert done.returncode == 2, done.stderr
    assert message in done.stderr
    assert "Traceback" not in done.stderr
    assert not (scenario.parent / "results").exists() or not list((scenario.parent / "results").iterdir())


def test_a_large_scenario_is_loaded_where_that_is_asked_for(scenario: Path):
    checked = elephan("scenario", "check", str(scenario), "--set", "trace.interval=1ps", "--large")
    assert checked.returncode == 0, checked.stderr
    assert "most of them for trace.interval" in checked.stdout
    interval = {"trace.interval": "1 ps"}
    with pytest.raises(ScenarioError, match=r"trace\.interval: expected at most 1e8 rows of samples"):
        load(scenario, interval)
    assert load(scenario, interval, large=True).document["trace"]["interval"] == "1 ps"
    path = {"rate": "1 Mbit/s", "rtt": "20 ms", "buffer": "9 packets", "duration": "2 s", "flows": [flow("reno")]}
    assert dumbbell(**path, large=True, measure={"interval": "1 ps"}).to_json()


def test_cc_list_and_show():
    listed = elephan("cc", "list").stdout
    for name in ("hstcp-fc", "ltcp", "hystart++"):
        assert name in listed
    shown = elephan("cc", "show", "scalable").stdout
    assert "0.125" in shown
    assert "Kelly" in shown


def test_queue_list_and_show():
    listed = elephan("queue", "list").stdout
    for name in ("droptail", "adaptive-red", "wred", "fq-codel", "priority"):
        assert name in listed
    shown = elephan("queue", "show", "pie").stdout
    assert "qdelay_ref" in shown
    assert "15 ms" in shown
    assert "RFC 8033" in shown
    assert "automatic" in elephan("queue", "show", "red").stdout


def test_drops_have_reasons_and_classes_have_rows(tmp_path: Path):
    done = elephan("run", "scenarios/examples/priority.toml", "--out", str(tmp_path / "o"))
    assert done.returncode == 0, done.stderr
    assert "policed" in done.stdout
    assert "Classes of bottleneck" in done.stdout
    summary = json.loads((tmp_path / "o" / "summary.json").read_text())
    link = summary["links"][0]
    reasons = ("dropped_full", "dropped_early", "dropped_policed", "dropped_down")
    assert link["dropped"] == sum(link[reason] for reason in reasons)
    assert [one["name"] for one in link["classes"]] == ["ef", "others", "af", "be"]
    # The policer lets 2 Mbit/s of the first stream pass.
    assert link["classes"][0]["throughput_bit_s"] == pytest.approx(2e6, rel=0.01)


def test_schema_is_json():
    assert json.loads(elephan("scenario", "schema").stdout)["title"] == "Elephan scenario"


def test_ctrl_c_leaves_nothing_behind(scenario: Path, tmp_path: Path):
    folder = tmp_path / "out"
    arguments = ["run", str(scenario), "--set", "duration=100000s", "--out", str(folder)]
    command = [sys.executable, "-c", "from elephan.cli import main; main()", *arguments]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    deadline = time.monotonic() + 20
    while not list(tmp_path.glob(".elephan-*")) and time.monotonic() < deadline:
        time.sleep(0.05)
    time.sleep(0.5)
    process.send_signal(signal.SIGINT)
    _, stderr = process.communicate(timeout=60)
    assert process.returncode == 130, stderr
    assert stderr.strip() == f"interrupted; nothing was written to {folder}"
    assert list(tmp_path.iterdir()) == [scenario]


@pytest.mark.parametrize("name", COMMANDS)
def test_the_list_of_commands_says_what_each_says_of_itself(name: str):
    shown = " ".join(re.sub(r"[│╭╮╰╯─]", " ", elephan(name, "--help").stdout).split())
    assert f"{' '.join(COMMANDS[name].split())}" in shown


# What takes long to import.
HEAVY = {"numpy", "polars", "pyarrow", "matplotlib", "scipy"}
# A run is stored as Parquet. It needs no frames, figures or functions of Arrow, and nothing of other commands.
RUN_NEEDS_NOT = {"polars", "matplotlib", "scipy", "pyarrow.compute", "duckdb", "distributed", "starlette"}
RUN_NEEDS_NOT |= {f"elephan.{name}" for name in ("base.plots", "kernel", "studies", "report", "ui")}


def modules_after(script: str, *arguments: str) -> set[str]:
    """The modules that are imported when a script has ended."""
    listed = "import atexit, sys; atexit.register(lambda: print(*sys.modules, sep='\\n', file=sys.stderr)); "
    command = [sys.executable, "-c", listed + script, *arguments]
    return set(subprocess.run(command, capture_output=True, text=True, check=True).stderr.split())


def test_the_package_and_the_list_of_commands_are_made_without_any_of_them():
    assert "elephan.cli" in (imported := modules_after("import elephan, elephan.cli"))
    assert not imported & HEAVY


def test_a_run_imports_only_what_it_needs(scenario: Path, tmp_path: Path):
    imported = modules_after(
        "from elephan.cli import main; main()", "run", str(scenario), "--out", str(tmp_path / "out")
    )
    assert "elephan.cli.run" in imported
    assert not imported & RUN_NEEDS_NOT
