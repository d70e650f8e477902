"""The tests of appendix A on this machine: how their samples are judged, and that they never claim what was not measured."""

import sys

import numpy as np
import pytest

from elephan.studies import bench
from elephan.studies.reproduce.catalogue import EXPERIMENTS
from elephan.studies.reproduce.judge import Kind, Place, Verdict, decided
from elephan.studies.reproduce.lab import Lab, Report
from elephan.studies.reproduce.li2006 import hardware
from elephan.studies.reproduce.stored import report_of, tables_of

EXPERIMENT = EXPERIMENTS["li2006/appendix-a"]


def waiting(load, latency_us, repeats=10, noise=0.05):
    """Answers of a receiver whose load and latency change by what is given when it waits."""
    print("seed 3")
    draw = np.random.default_rng(3)
    answers = {}
    for wait in (0.0, *hardware.WAITS_S):
        rest = wait > 0
        costs = 20e-6 * (load if rest else 1.0) * (1 + noise * draw.standard_normal(repeats))
        times = (30e-6 + (latency_us * 1e-6 if rest else 0.0)) * (1 + noise * draw.standard_normal(repeats))
        answers[f"stream {wait}"] = [
            {"receiver_seconds": cost / 2, "kernel_seconds": cost / 2, "arrived": 1} for cost in costs
        ]
        answers[f"ping {wait}"] = [[{"median": time}] for time in times]
    return answers


@pytest.mark.parametrize(
    ("load", "latency_us", "verdict"),
    [
        (0.5, 80, Verdict.CONFIRMED),
        (2.0, 80, Verdict.REFUTED),
        (0.5, -15, Verdict.REFUTED),
        (1.0, 0, Verdict.UNDECIDED),
    ],
)
def test_the_claim_on_coalescing_needs_less_load_and_more_latency(load, latency_us, verdict):
    findings = hardware.waiting_findings(waiting(load, latency_us))
    assert len(findings) == 2 * len(hardware.WAITS_S)
    assert decided(findings, "every") == verdict


def test_half_of_a_claim_that_cannot_be_tested_leaves_it_open(monkeypatch, tmp_path):
    """Arrays of disks are the other half: no speed of one disk confirms it, but one that falls refutes it."""
    assert decided(_disks(monkeypatch, tmp_path, [1e8, 2e8, 4e8]), "every") == Verdict.UNDECIDED
    assert decided(_disks(monkeypatch, tmp_path, [4e8, 2e8, 1e8]), "every") == Verdict.REFUTED


def _disks(monkeypatch, folder, speeds):
    draw = np.random.default_rng(4)
    print("seed 4")
    monkeypatch.setattr(
        bench, "measure", lambda _: [{"bytes": s * (1 + 0.01 * draw.standard_normal()), "seconds": 1.0} for s in speeds]
    )
    monkeypatch.setattr(bench.in_turn, "__kwdefaults__", bench.in_turn.__kwdefaults__ | {"by": bench.measure})
    found = hardware._of_disks(folder, 10, 1 << 20)
    assert found[-1].unusable
    return found


def test_what_is_refused_is_untestable_with_the_reason(monkeypatch, tmp_path):
    def refuse(_):
        raise PermissionError(1, "a loop device of our own: Operation not permitted")

    monkeypatch.setattr(bench.in_turn, "__kwdefaults__", bench.in_turn.__kwdefaults__ | {"by": refuse})
    disks = hardware._of_disks(tmp_path, 2, 1 << 20)
    assert decided(disks, "every") == Verdict.UNTESTABLE
    assert all("loop device" in one.unusable for one in disks[:-1])
    monkeypatch.setattr(bench, "namespaces", lambda: (None, "not here"))
    cards = hardware._of_cards(2, 0.1, 10)
    assert decided(cards, "every") == Verdict.UNTESTABLE
    assert "not here" in cards[0].unusable


def test_numbers_of_two_machines_have_no_verdict(tmp_path):
    report = Report(Lab(tmp_path))
    report.beside("speed", "Mbit/s", [hardware._row("a card", 100.0, bench.Estimate.of([1.0, 2.0]))], hardware.OTHER)
    document = report_of(EXPERIMENT, report)
    [one] = document["comparisons"]
    assert (one["verdict"], one["kind"]) == (Verdict.BESIDE, Kind.HARDWARE)
    [table] = tables_of(document)
    assert [head.text for head in table.head] == ["system", "published", "this machine", "deviation", "verdict"]
    assert table.rows[0][-2:] == ["-", "-"]


def test_another_engine_is_not_asked(tmp_path):
    report = EXPERIMENT.function(Lab(tmp_path, engine="kernel"))
    assert {one.verdict for one in report.judgements} == {Verdict.UNTESTABLE}
    assert report.comparisons == []


def test_a_place_with_samples_is_judged_by_them():
    place = Place.sampled("one", above=1.0)
    assert hardware.findings_of([(place, [2.0, 2.1, 2.2])], 1)[0].holds
    assert hardware.findings_of([(place, [0.2, 0.1, 0.3])], 1)[0].holds is False


@pytest.mark.skipif(sys.platform != "linux", reason="it measures Linux")
def test_a_claim_alone_is_measured_on_this_machine(tmp_path):
    """Whatever this machine permits, there is a verdict or a reason, and nothing is left on its disk."""
    report = EXPERIMENT.function(Lab(tmp_path / "runs", quick=True, claims=frozenset({"L72"})))
    [judgement] = report.judgements
    assert judgement.verdict in (Verdict.UNDECIDED, Verdict.REFUTED, Verdict.UNTESTABLE)
    assert list((tmp_path / "runs").iterdir()) == []
