"""Scenarios of experiments as kernels run them: what is left out is named, and what would change the experiment is refused."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest

from elephan.api.scenario import dumbbell, flow
from elephan.studies import lab
from elephan.studies.judge import dead
from elephan.studies.lab import UnsuitableError
from elephan.studies.reproduce import kernels
from elephan.studies.reproduce.lab import Lab

STACK = {
    "byte_counting": {"abc": {"L": 2}},
    "delayed_ack": {"segments": 1},
    "quantisation": "round_up",
    "initial_window": 2,
    "rto_min": "200 ms",
}


def path(*flows, tcp=STACK, **keys):
    return dumbbell(
        rate="20 Mbit/s", rtt="20 ms", flows=flows, duration="5 s", tcp=tcp, measure={"from": "1 s"}, **keys
    )


def test_what_a_kernel_decides_itself_is_left_out_and_named():
    expressed, notes = kernels.express(path(flow("scalable")), "kernel")
    assert expressed.document["engine"] == "kernel"
    assert expressed.document["tcp"]["initial_window"] == 2
    assert "quantisation" not in expressed.document["tcp"]
    assert [note.partition(":")[0] for note in notes] == ["tcp.byte_counting", "tcp.delayed_ack", "tcp.quantisation"]


def test_a_profile_gives_the_keys_that_a_kernel_can_be_told():
    expressed, notes = kernels.express(path(flow("reno"), tcp={"profile": "linux-2.4"}), "kernel")
    assert "profile" not in expressed.document["tcp"]
    assert expressed.document["tcp"]["rto_min"] == "10 ms"
    assert notes == ['tcp.profile: the kernel\'s own, not "linux-2.4"']


def test_the_form_of_linux_is_its_own_algorithm():
    expressed, _ = kernels.express(path(flow({"name": "hstcp", "form": "linux"})), "kernel")
    assert expressed.document["flow"][0]["cc"] == "linux:highspeed"


@pytest.mark.parametrize(
    ("one", "stack", "key"),
    [
        (flow("newreno"), {}, "flow.cc"),
        (flow("scalable", slow_start="limited"), {}, "flow.slow_start"),
        (flow("reno", tcp={"recovery": "reno"}), {}, "tcp.recovery"),
        (flow("reno"), {"initial_ssthresh": 100}, "tcp.initial_ssthresh"),
        (flow("reno"), {"byte_counting": "per_ack"}, "tcp.byte_counting"),
    ],
)
def test_what_would_be_another_experiment_is_refused(one, stack, key):
    with pytest.raises(UnsuitableError, match=key):
        kernels.express(path(one, tcp=stack), "kernel")


def test_in_real_time_one_run_at_a_time(tmp_path, monkeypatch):
    at_once = []
    monkeypatch.setattr(lab, "ThreadPoolExecutor", lambda count: at_once.append(count) or ThreadPoolExecutor(count))
    for engine in ("linux", "kernel"):
        Lab(tmp_path, engine=engine).run([])
    assert at_once == [1, lab.core_count()]


@pytest.mark.slow
@pytest.mark.usefixtures("guest")
def test_a_run_on_a_kernel_counts_unless_the_machine_disturbed_it():
    expressed, _ = kernels.express(path(flow("scalable"), flow("bic")), "kernel")
    run = kernels.run(expressed)
    assert dead(run) == ""
    disturbed = replace(run, provenance={**run.provenance, "quality": {"invalid_because": ["it was late"]}})
    assert dead(disturbed) == "the machine disturbed it: it was late"
