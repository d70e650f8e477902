"""Comparing engines, with a fake kernel: its runs are simulated, and report whether they are valid."""

from dataclasses import replace

import pytest

from elephan.api.scenario import dumbbell, flow
from elephan.engines.run import run as simulate
from elephan.studies import side_by_side as engines


@pytest.fixture
def kernel(monkeypatch):
    """A kernel whose runs give the reasons in `to_come`, one list each, at 10 Mbit/s, and 1 Mbit/s less with each run."""
    to_come = []
    made = []

    def run(scenario):
        done = simulate(scenario.with_settings({"engine": "sim", "path.rate": f"{10 - len(made)} Mbit/s"}))
        made.append(replace(done, provenance={"quality": {"invalid_because": to_come[len(made)]}}))
        return made[-1]

    monkeypatch.setattr(engines.linux, "run", run)
    return to_come, made


def pair(**options):
    path = dumbbell(rate="10 Mbit/s", rtt="20 ms", buffer="100% bdp", flows=[flow("reno")], duration="3 s")
    return engines.pair(path, name="short", **options)


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
