"""Comparing engines, with fake kernels: their runs are simulated, and report whether they are valid."""

import json
from dataclasses import replace
from types import SimpleNamespace

import pytest
from typer.testing import CliRunner

from elephan.api.scenario import dumbbell, flow
from elephan.cli import app
from elephan.engines.run import run as simulate
from elephan.studies import side_by_side as engines


@pytest.fixture
def kernel(monkeypatch):
    """A kernel whose runs give the reasons in `to_come`, one list each, at 10 Mbit/s, and 1 Mbit/s less with each run."""
    to_come = []
    made = []

    def run(scenario, cancel=None):
        if scenario.document["engine"] == "sim":
            return simulate(scenario, cancel=cancel)
        simulated = engines.on_simulator(scenario, large=False) or scenario.with_settings(
            {"engine": "sim", "flow.cc": "reno"}
        )
        done = simulate(simulated.with_settings({"path.rate": f"{10 - len(made)} Mbit/s"}))
        reasons = to_come[len(made)] if to_come else []
        made.append(replace(done, provenance={**done.provenance, "quality": {"invalid_because": reasons}}))
        return made[-1] if to_come else replace(made.pop(), scenario=scenario)

    monkeypatch.setattr(engines, "run", run)
    return to_come, made


def scenario(cc="reno", **keys):
    return dumbbell(rate="10 Mbit/s", rtt="20 ms", buffer="100% bdp", flows=[flow(cc)], duration="3 s", **keys)


def pair(**options):
    return next(engines.pairs({"short": scenario()}, engine="linux", **options))


def goodput(found):
    return found.values(engines.QUANTITIES[0])[1]


def test_a_run_that_the_machine_disturbed_is_carried_out_again(kernel):
    to_come, made = kernel
    to_come += [["it waited"], []]
    found = pair()
    assert len(made) == 2
    assert goodput(found) == pytest.approx(9 * 1448 / 1500, rel=0.05)
    assert found.validity == "yes, after 1 invalid: it waited"


def test_where_no_run_is_valid_all_are_shown_with_their_reasons(kernel):
    to_come, made = kernel
    to_come += [["it waited"], ["a packet was lost"], ["it waited again"]]
    found = pair()
    assert len(made) == engines.ATTEMPTS
    assert goodput(found) == pytest.approx(9 * 1448 / 1500, rel=0.05)
    assert found.validity == "it waited; a packet was lost; it waited again"


def test_every_repeat_is_made_valid(kernel):
    to_come, made = kernel
    to_come += [[], ["it waited"], []]
    found = pair(repeat=2)
    assert len(made) == 3
    assert [len(run.provenance["quality"]["invalid_because"]) for run in found.counted] == [0, 0]
    assert "| yes, after 1 invalid: it waited |" in engines.table([found]).to_markdown()


@pytest.mark.parametrize(
    ("name", "simulated"),
    [
        ("reno", "reno"),
        ("linux:htcp", {"name": "htcp", "form": "linux"}),
        ("linux:highspeed", {"name": "hstcp", "form": "linux"}),
        ("highspeed", {"name": "hstcp", "form": "linux"}),
        ("linux:reno", "reno"),
        ("kernel:bic", "kernel:bic"),
        ({"name": "scalable", "a": 0.02}, {"name": "scalable", "a": 0.02}),
        ("linux:bbr", None),
        ("westwood", "westwood"),
        ("lp", None),
    ],
)
def test_the_simulator_runs_the_algorithm_of_the_same_rule(monkeypatch, name, simulated):
    monkeypatch.setattr(engines.source, "current", lambda: None)
    found = engines.on_simulator(scenario(name, engine="kernel", kernel={"version": "6.12"}), large=False)
    assert (found and found.document["flow"][0]["cc"]) == simulated
    assert found is None or found.document["engine"] == "sim"


def test_of_what_only_linux_has_the_module_of_an_imported_source_is_simulated(monkeypatch):
    tree = SimpleNamespace(modules=lambda: dict.fromkeys(("bbr", "htcp", "veno"), "tcp.c"))
    monkeypatch.setattr(engines.source, "current", lambda: tree)
    assert [engines._same_rule(name) for name in ("bbr", "linux:bbr", "lp")] == ["linux:bbr", "linux:bbr", None]
    assert engines._same_rule("linux:htcp") == {"name": "htcp", "form": "linux"}
    assert [engines._same_rule(name) for name in ("linux:veno", "veno")] == ["linux:veno", "veno"]


def test_crowds_have_an_algorithm_too():
    crowds = {"arrivals": [{"per_second": 10, "size": "20 kB", "cc": "linux:htcp"}]}
    found = engines.on_simulator(scenario(engine="kernel", **crowds), large=False)
    assert found.document["arrivals"][0]["cc"] == {"name": "htcp", "form": "linux"}


@pytest.mark.usefixtures("kernel")
def test_pairs_come_in_order_and_what_the_simulator_lacks_is_empty(monkeypatch, tmp_path):
    monkeypatch.setattr(engines.source, "current", lambda: None)
    scenarios = {name: scenario(name, engine="kernel") for name in ("htcp", "bbr", "reno")}
    found = list(engines.pairs(scenarios))
    assert [one.name for one in found] == list(scenarios)
    assert [one.sim is None for one in found] == [False, True, False]
    rows = engines.table(found).to_markdown().splitlines()
    assert "| bbr | - / " in rows[3]
    assert "(+0.0 %)" in rows[2]
    found[1].write_into(tmp_path)
    found[1].draw(tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["cwnd.png", "difference.json", "kernel"]
    goodput = json.loads((tmp_path / "difference.json").read_text())["quantities"]["goodput"]
    assert goodput["sim"] is None
    assert goodput["kernel"] == pytest.approx(10 * 1448 / 1500, rel=0.05)


@pytest.mark.usefixtures("kernel")
def test_the_command_writes_a_folder_for_each_scenario(monkeypatch, tmp_path):
    monkeypatch.setattr(engines.source, "current", lambda: None)
    path = tmp_path / "short.toml"
    path.write_text(
        'name = "short"\nduration = "3 s"\npath = { rate = "10 Mbit/s", rtt = "20 ms" }\nflow = [{ cc = "reno" }]\n'
    )

    def called(*words):
        given = ["compare", str(path), "--engines", "sim,kernel", "--out", str(tmp_path / "out"), *words]
        return CliRunner().invoke(app, given, catch_exceptions=True)

    done = called("--cc", "htcp,linux:bbr", "--format", "md")
    assert done.exit_code == 0, done.output
    assert sorted(one.name for one in (tmp_path / "out").iterdir()) == ["short-htcp", "short-linux-bbr"]
    for words, expected in (
        (["--cc", "htcp"], "expected a new folder, found one with results; --force replaces it"),
        (["--engines", "sim"], "--engines: expected sim,kernel or sim,linux, found 'sim'"),
        (["--repeat", "2"], "--repeat: expected 1 with the engine kernel, whose runs are exact, found 2"),
        ([str(path), "--cc", "reno"], "expected scenarios of different names, found 'short reno' twice"),
    ):
        assert expected in str(called(*words).exception)
