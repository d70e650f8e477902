"""The command line, as its users call it."""

import csv
import io
import json
import re
import shutil
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest
from command_line import call
from typer.testing import CliRunner

from elephan import ScenarioError, _core, dumbbell, flow, load
from elephan.api.scenario import Scenario
from elephan.base.text import Terminal
from elephan.cli import app, progress
from elephan.cli.complete import setting

EXAMPLES = sorted(Path("python/elephan/examples").glob("*.toml"))
SMALL = """
duration = "3 s"
path = { rate = "10 Mbit/s", rtt = "20 ms", buffer = "20 packets" }
flow = [{ cc = "reno" }]
"""


@pytest.fixture
def scenario(tmp_path: Path) -> Path:
    path = tmp_path / "small.toml"
    path.write_text(SMALL)
    return path


def test_version():
    """In a process of its own, as a shell starts it."""
    command = [sys.executable, "-c", "from elephan.cli import main; main()", "--version"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout == f"elephan {version('elephan')}\n"


def test_a_run_writes_no_picture_before_it_is_asked_for(scenario: Path, tmp_path: Path):
    done = call("run", scenario, "--threads", "2", "--out", tmp_path / "out")
    assert done.returncode == 0, done.stderr
    assert not list((tmp_path / "out").glob("*.png"))
    assert call("plot", "queue", tmp_path / "out").returncode == 0
    assert (tmp_path / "out" / "queue.png").exists()


def test_a_run_says_that_it_samples_many_flows_less_often(scenario: Path, tmp_path: Path):
    many = ("run", str(scenario), "--set", "flow.count=1001", "--force", "--out", str(tmp_path / "out"))
    assert "sampled every 200 ms" in call(*many).stdout
    assert "sampled every" not in call(*many, "--set", "trace.interval=500ms").stdout


def test_json_is_all_there_is_on_stdout(scenario: Path, tmp_path: Path):
    done = call(
        "run", str(scenario), "--format", "json", "--seed", "7", "--set", "path.rtt=40ms", "--out", str(tmp_path / "o")
    )
    assert json.loads(done.stdout)["flows"][0]["label"] == "reno"
    assert json.loads((tmp_path / "o" / "run.json").read_text())["scenario"]["path"]["rtt"] == "40 ms"
    assert done.stderr == ""


def test_events_and_captures(scenario: Path, tmp_path: Path):
    done = call("run", str(scenario), "--trace", "events", "--pcap", "bottleneck", "--out", str(tmp_path / "o"))
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
    shown = call("scenario", "show", "scenarios/engines/one-20.toml", "--set", "tcp.rto_variance_min=50ms")
    assert shown.returncode == 0, shown.stderr
    assert {"rack = true", 'window_reduction = "prr"', 'rto_variance_min = "50 ms"'} <= set(shown.stdout.splitlines())


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_every_example_runs(path: Path, tmp_path: Path):
    assert call("scenario", "check", str(path)).returncode == 0
    command = "sweep" if "[sweep]" in path.read_text() else "run"
    done = call(command, str(path), "--out", str(tmp_path / "out"))
    assert done.returncode == 0, done.stderr


def test_a_large_scenario_is_loaded_where_that_is_asked_for(scenario: Path):
    checked = call("scenario", "check", str(scenario), "--set", "trace.interval=1ps", "--large")
    assert checked.returncode == 0, checked.stderr
    assert "most of them for trace.interval" in checked.stdout
    interval = {"trace.interval": "1 ps"}
    with pytest.raises(ScenarioError, match=r"trace\.interval: expected at most 1e8 rows of samples"):
        load(scenario, interval)
    assert load(scenario, interval, large=True).document["trace"]["interval"] == "1 ps"
    path = {"rate": "1 Mbit/s", "rtt": "20 ms", "buffer": "9 packets", "duration": "2 s", "flows": [flow("reno")]}
    assert dumbbell(**path, large=True, measure={"interval": "1 ps"}).to_json()


def test_examples_are_known_by_their_names_and_copied_with_what_they_need(tmp_path: Path):
    done = call("scenario", "check", "cellular", cwd=tmp_path)
    assert done.stdout.startswith("cellular: valid, 3 runs"), done.stderr
    (tmp_path / "cellular").mkdir()  # a folder, of results for example, does not hide it
    assert call("scenario", "check", "cellular", cwd=tmp_path).returncode == 0
    shown = call("scenario", "examples", "--out", "mine", cwd=tmp_path)
    assert shown.returncode == 0, shown.stderr
    assert call("scenario", "check", "mine/cellular.toml", cwd=tmp_path).returncode == 0
    assert call("scenario", "examples", "--out", "mine", cwd=tmp_path).returncode == 2


def test_drops_have_reasons_and_classes_have_rows(tmp_path: Path):
    done = call("run", "priority", "--out", str(tmp_path / "o"))
    assert done.returncode == 0, done.stderr
    summary = json.loads((tmp_path / "o" / "summary.json").read_text())
    link = summary["links"][0]
    reasons = ("dropped_full", "dropped_early", "dropped_policed", "dropped_down")
    assert link["dropped"] == sum(link[reason] for reason in reasons)
    assert [one["name"] for one in link["classes"]] == ["ef", "others", "af", "be"]
    # The policer lets 2 Mbit/s of the first stream pass.
    assert link["classes"][0]["throughput_bit_s"] == pytest.approx(2e6, rel=0.01)


def test_schema_is_json():
    assert json.loads(call("scenario", "schema").stdout)["title"] == "Elephan scenario"


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


def test_identical_repeats_are_said(tmp_path):
    ran = call(
        *["compare", "--cc", "reno", "--flows", "1", "--duration", "25s", "--repeat", "2"], "--out", tmp_path / "out"
    )
    assert "the repeats of reno are identical" in " ".join(ran.stdout.split())
    assert " ± " not in ran.stdout


def test_a_comparison_says_how_much_of_a_run_counts_if_it_is_little(tmp_path):
    options = ["--cc", "mine=reno", "--rate", "10Mbit/s", "--repeat", "1", "--duration", "25s", "--force"]
    ran = call("compare", *options, "--out", tmp_path / "out")
    assert "measured from 20 s on, 20 % of each run" in " ".join(ran.stdout.split())
    assert "\nmine " in ran.stdout
    ran = call("compare", *options, "--start-within", "5s", "--out", tmp_path / "out")
    assert "measured from" not in ran.stdout


def test_estimates_are_numbers_in_csv_and_json(tmp_path):
    options = ["--cc", "reno", "--duration", "25s", "--repeat", "2", "--columns", "goodput,fair_share", "--force"]
    ran = [
        call("compare", *options, "--format", form, "--out", tmp_path / "out", "--rate", "10Mbit/s")
        for form in ("csv", "json")
    ]
    rows, records = list(csv.DictReader(io.StringIO(ran[0].stdout))), json.loads(ran[1].stdout)
    assert [row["metric"] for row in rows] == [one["metric"] for one in records] == ["goodput", "fair share"]
    for name in ("mean", "low", "high"):
        assert float(rows[0][name]) == records[0][name]
    assert records[0]["low"] <= records[0]["mean"] <= records[0]["high"]


def test_a_column_that_only_other_runs_have_is_named(tmp_path):
    ran = call("run", "two-flows", "--set", "duration=30s", "--out", tmp_path / "out", "--columns", "goodput,received")
    assert ran.returncode == 0
    assert ran.stderr.splitlines()[-1] == "--columns: this run has no received"


def test_columns_choose_the_keys_of_the_json_of_a_run(tmp_path):
    def printed(columns: str) -> Any:
        ran = call(
            *["run", "two-flows", "--set", "duration=30s", "--out", tmp_path / "out", "--force"],
            *["--format", "json", "--columns", columns],
        )
        return json.loads(ran.stdout)

    whole, part = printed("all"), printed("goodput,retransmitted,convergence,queue")
    assert whole == json.loads((tmp_path / "out" / "summary.json").read_text())
    flow = {"label", "goodput_bit_s", "convergence_s", "sent_bytes", "retransmitted_bytes"}
    link = {"name", "queue_mean_packets", "queue_max_packets"}
    assert part.keys() == {"from_s", "to_s", "goodput_bit_s", "convergence_s", "flows", "links"}
    assert part["flows"] == [{key: one[key] for key in flow} for one in whole["flows"]]
    assert part["links"] == [{key: one[key] for key in link} for one in whole["links"]]
    assert printed("received") == {}


def test_the_former_word_for_a_list_works_and_says_the_present_one():
    former, present = (CliRunner().invoke(app, ["scenario", word]) for word in ("examples", "list"))
    assert (former.exit_code, former.stdout) == (0, present.stdout)
    assert (former.stderr, present.stderr) == ("`elephan scenario examples` is `elephan scenario list` now\n", "")


@pytest.mark.parametrize(
    "command",
    [
        "cc list",
        "cc show reno",
        "queue list",
        "model fairness --cc reno",
        "reproduce list",
        "model list",
        "scenario list",
        "packetdrill list",
    ],
)
def test_every_format_of_a_table_is_alone_on_standard_output(command: str):
    def printed(form: str) -> str:
        done = CliRunner().invoke(app, [*command.split(), "--format", form])
        assert (done.exit_code, done.stderr) == (0, ""), done.output
        return done.stdout

    assert json.loads(printed("json"))
    tables = [list(csv.reader(io.StringIO(text))) for text in printed("csv").split("\n\n")]
    assert all(len({len(row) for row in table}) == 1 for table in tables)
    assert all(line.startswith("|") for line in printed("md").splitlines()[-1:])
    assert printed("latex").endswith("\\end{tabular}\n")
    assert not printed("table").startswith(("|", "{", "["))


def test_the_doctor_names_each_part_and_what_it_needs(monkeypatch: pytest.MonkeyPatch):
    from elephan.studies import machine

    done = call("doctor", "--format", "json")
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert [row["part"] for row in told] == list(machine.PARTS)
    assert all((row["works"] == "yes") == (row["needs"] == "") for row in told)
    monkeypatch.setenv("PATH", "")
    monkeypatch.delenv("CC", raising=False)
    lacks = {check.part: check.remedy for check in machine.checks() if not check.works}
    assert lacks["C compiler, for algorithms in C"] == "apt-get install gcc"
    assert lacks["ns-2, for reproduce --engine ns2"] == "apt-get install ns2"
    assert "simulator" not in lacks

    def closed() -> None:
        raise PermissionError(13, "Permission denied", "/cache/kernels")

    monkeypatch.setattr(machine.image, "images", closed)
    (denied,) = (check for check in machine.checks() if check.part == "--engine kernel")
    assert denied.found == "no access to /cache/kernels"
    monkeypatch.setattr(machine, "run", lambda _: 1 / 0)
    assert machine.checks()[0].remedy == "a defect: please report it"


@pytest.mark.parametrize(
    ("typed", "offered"),
    [
        ("elephan repr", {"reproduce"}),
        ("elephan run two-f", {"two-flows"}),
        ("elephan run x --set path.rt", {"path.rtt="}),
        ("elephan compare --cc reno,ht", {"reno,htcp"}),
        ("elephan reproduce kelly2003/figure", {"kelly2003/figure-3"}),
        ("elephan queue show fq", {"fq-codel"}),
        ("elephan sweep table x --metric goodput,fair_", {"goodput,fair_share"}),
        ("elephan run x --form", {"--format"}),
    ],
)
def test_tab_completes_what_is_typed(typed: str, offered: set[str]):
    words = typed.split()
    asked = {"_ELEPHAN_COMPLETE": "complete_bash", "COMP_WORDS": typed, "COMP_CWORD": str(len(words) - 1)}
    done = CliRunner().invoke(app, [], env=asked, prog_name="elephan")
    assert set(done.output.split()) == offered


def test_a_value_after_a_key_is_completed_where_a_registry_names_it():
    assert setting("flow.0.cc=htc") == ["flow.0.cc=htcp"]
    assert setting("path.queue=fq") == ["path.queue=fq-codel"]
    assert setting("path.rtt=8") == []


def test_what_a_task_says_before_its_first_share_stands_alone(monkeypatch, capsys):
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.delenv("NO_COLOR", raising=False)
    with progress.progress_bar("task") as move:
        Terminal(stderr=True).message("about 8 s")
        assert capsys.readouterr().err == "about 8 s\n"
        move(0.5)
    assert "task" in capsys.readouterr().err


def test_progress_is_a_line_now_and_then_where_there_is_no_terminal(monkeypatch, capsys):
    now_s = [0.0]
    monkeypatch.setattr(progress.time, "monotonic", lambda: now_s[0])
    lines = progress.Lines("task")
    for at_s, share in ((5, 0.1), (20, 0.25), (21, 0.3), (31, 0.5)):
        now_s[0] = at_s
        lines(share)
    assert capsys.readouterr().err == "task: 25%, about 60 s left\ntask: 50%, about 31 s left\n"


def test_only_long_runs_are_announced(scenario: Path, monkeypatch, capsys):
    short = load(scenario)
    # The speed of this machine, which is measured first, is not.
    monkeypatch.setattr(progress, "_event_s", lambda: progress.USUAL_EVENT_S)
    progress.announce([short])
    assert capsys.readouterr().err == ""
    progress.announce([short], repeat=100_000, cores=1)
    assert re.fullmatch(
        r"100000 runs on 1 core: at most about \d+ (min|s) if nothing else runs\n", capsys.readouterr().err
    )
    monkeypatch.setattr(progress, "_event_s", lambda: 10 * progress.USUAL_EVENT_S)
    progress.announce([short], repeat=10_000, cores=1)
    slow = capsys.readouterr().err
    monkeypatch.setattr(progress, "_event_s", lambda: progress.USUAL_EVENT_S)
    progress.announce([short], repeat=100_000, cores=1)
    assert slow == capsys.readouterr().err.replace("100000", "10000")
    progress.announce([Scenario({**short.document, "engine": "model"})], repeat=100_000, cores=1)
    progress.announce([Scenario({**short.document, "engine": "linux"})], repeat=40)
    assert capsys.readouterr().err == "40 runs in real time: 2 min\n"


def test_a_first_build_of_a_checkout_names_what_builds_the_rest(monkeypatch: pytest.MonkeyPatch) -> None:
    def lacks(*_: object, **_named: object) -> None:
        raise ImportError("without run_packetdrill; `make all` builds the rest")

    monkeypatch.setattr(_core, "run_packetdrill", lacks)
    done = call("packetdrill")
    assert (done.returncode, done.stderr) == (1, "without run_packetdrill; `make all` builds the rest\n")
