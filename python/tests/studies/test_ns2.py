"""The same scenarios on ns-2: what it can express, and that it agrees with the simulator where it should."""

import json
import shutil
import threading

import pytest

import elephan
from elephan import _core
from elephan.api.run import Run
from elephan.api.scenario import Scenario, dumbbell, flow
from elephan.studies.judge import Arm, Claim, Place
from elephan.studies.lab import UnsuitableError
from elephan.studies.reproduce import ns2
from elephan.studies.reproduce.lab import Lab, Report
from elephan.studies.reproduce.ns2 import results

ACK_COUNTING = {"tcp.delayed_ack.segments": "2", "tcp.byte_counting": '"per_ack"'}


def needs_ns2(test):
    return pytest.mark.slow(pytest.mark.skipif(shutil.which("ns") is None, reason="ns-2 is not installed")(test))


def slow_path(*flows: dict[str, object], duration: str = "60 s", **keys: object) -> Scenario:
    tables = {"tcp": {"delayed_ack": {"segments": 1}}, "measure": {"from": "10 s"}, **keys}
    return dumbbell(rate="10 Mbit/s", rtt="50 ms", flows=flows, duration=duration, **tables)


@needs_ns2
def test_standard_tcp_has_the_goodput_of_the_simulator():
    scenario = slow_path(flow("reno"))
    ours, other = elephan.run(scenario).summary, ns2.run(scenario).summary
    assert other.goodput_bit_s == pytest.approx(ours.goodput_bit_s, rel=0.02)
    assert other.links[0].queue_max_packets == pytest.approx(ours.links[0].queue_max_packets, abs=2)
    assert other.utilisation == pytest.approx(ours.utilisation, rel=0.02)
    assert (other.from_s, other.to_s) == (ours.from_s, ours.to_s)


@needs_ns2
@pytest.mark.parametrize(
    "cc", ["newreno", "hstcp", "scalable", "htcp", "bic", "cubic", {"name": "hstcp", "form": "linux"}]
)
def test_every_algorithm_uses_the_path(cc):
    found = ns2.run(slow_path(flow(cc), duration="30 s")).summary
    assert 0.8 < found.utilisation <= 1.0
    assert found.flows[0].congestion_events > 0
    assert found.flows[0].retransmitted_bytes > 0


@needs_ns2
def test_a_random_start_is_that_of_the_simulator_and_the_newest_flow_converges():
    scenario = slow_path(flow("reno"), flow("reno", start={"uniform": ["2 s", "9 s"]}), seed=7)
    ours, other = elephan.run(scenario).summary, ns2.run(scenario).summary
    assert other.flows[1].start_s == ours.flows[1].start_s
    assert other.jain == pytest.approx(ours.jain, abs=0.1)
    assert other.convergence_s is not None


@needs_ns2
def test_losses_on_the_wire_are_not_drops():
    path = {"loss": {"name": "random", "probability": 0.01}}
    link = ns2.run(slow_path(flow("reno"), path=path)).summary.links[0]
    assert link.dropped == 0
    assert link.lost / link.offered == pytest.approx(0.01, rel=0.3)


@needs_ns2
def test_red_keeps_the_average_between_its_thresholds():
    queue = {"name": "red", "min_th": 10, "max_th": 30, "w_q": 0.002}
    link = ns2.run(slow_path(flow("reno", count=4), path={"queue": queue, "buffer": "200 packets"})).summary.links[0]
    assert 10 < link.queue_mean_packets < 30
    assert link.dropped_early == link.dropped > 0


@needs_ns2
def test_limited_slow_start_of_scalable_tcp_ends_at_its_first_loss():
    limited = slow_path(flow("scalable", slow_start="limited"), duration="30 s")
    standard = slow_path(flow("scalable"), duration="30 s")
    first, second = (ns2.run(one).summary.overhead_whole_s_bit for one in (limited, standard))
    assert first < second


@needs_ns2
def test_a_run_is_stored_and_read_as_any_other(tmp_path):
    scenario = slow_path(flow("reno"), flow("htcp", rtt="80 ms"), duration="20 s")
    run = ns2.run(scenario)
    again = Run.load(run.save(tmp_path / "run"))
    assert again.summary == run.summary
    assert again.provenance["engine"] == "ns2"
    assert again.flows.columns == elephan.run(scenario).flows.columns
    assert again.queues["packets"].max() > 0
    assert json.loads((tmp_path / "run" / "run.json").read_text())["ns2"].startswith("2.")


@needs_ns2
def test_a_cancelled_run_ends():
    cancel = _core.Cancel()
    threading.Timer(0.3, cancel.set).start()
    with pytest.raises(KeyboardInterrupt):
        ns2.run(slow_path(flow("reno", count=20), duration="100000 s"), cancel)


def test_without_the_tool_the_error_says_what_to_install(monkeypatch):
    ns2.version.cache_clear()
    monkeypatch.setenv("PATH", "")
    with pytest.raises(OSError, match="Debian package ns2"):
        ns2.run(slow_path(flow("reno")))


@pytest.mark.parametrize(
    ("change", "line"),
    [
        ({"flow.cc": "fast"}, "flow.0.cc: ns-2: expected one of"),
        ({"flow.0.size": "1 MB"}, "flow.0.size: ns-2: expected none, found 1 MB"),
        ({"path.queue": "codel"}, "path.queue: ns-2: expected droptail, red or adaptive-red, found codel"),
        ({"path.reverse.queue": "red"}, "path.reverse.queue: ns-2: expected droptail, found red"),
        ({"flow.0.cc": "htcp", "flow.0.slow_start": "limited"}, "flow.0.slow_start: ns-2: expected standard, found limited"),
        ({"flow.0.cc": '{name="bic", beta=0.7}'}, "flow.0.cc.beta: ns-2: expected its default, found 0.7"),
        ({"flow.0.cc": '{name="htcp", rtt_scaling="seconds"}'}, "flow.0.cc.rtt_scaling: ns-2: expected reference or off"),
        ({"flow.0.cc": "bic", **ACK_COUNTING}, "tcp.byte_counting: ns-2: expected abc"),
        ({"flow.0.cc": '{name="scalable", form="linux"}'}, "tcp.delayed_ack.segments: ns-2: expected 2"),
        ({"flow.0.cc": "hstcp", "tcp.delayed_ack.segments": "2"}, "tcp.byte_counting: ns-2: expected per_ack with hstcp"),
        ({"tcp.ecn": "true"}, "tcp.ecn: ns-2: expected false, found true"),
        ({"tcp.byte_counting": '"per_any_ack"'}, "tcp.byte_counting: ns-2: expected per_ack"),
        ({"tcp.misbehave": "{ack_division=3}"}, "tcp.misbehave.ack_division: ns-2: expected an honest end, found 3"),
        ({"tcp.misbehave": "{ignore_losses=true}"}, "tcp.misbehave.ignore_losses: ns-2: expected an honest end, found true"),
        ({"host": '{data="1 us"}'}, "host: ns-2: expected none"),
        ({"trace.events": "true"}, "trace.events: ns-2: expected none, found true"),
        ({"cbr": '[{rate="1 Mbit/s"}]'}, "cbr: ns-2: expected none"),
    ],
)  # fmt: skip
def test_what_ns2_cannot_do_is_refused_with_its_key(change, line):
    scenario = slow_path(flow("reno")).with_settings(change)
    assert any(reason.startswith(line) for reason in ns2.unsupported(scenario))
    with pytest.raises(UnsuitableError):
        ns2.express(scenario)


def test_what_ns2_does_otherwise_is_told():
    abc = {"byte_counting": {"abc": {"L": 2}}, "delayed_ack": {"segments": 2, "timeout": "200 ms"}}
    _, told = ns2.express(slow_path(flow("reno"), tcp=abc))
    assert told == ["reno: ns-2 counts ACKs, so an ACK adds 2 times as much; slow start counts ACKs"]


def test_the_short_term_goodput_converges_as_in_the_metrics():
    # The example of crates/metrics/src/formula.rs: 0.8 is reached after 1.609 time constants of 25 round trips.
    assert results._convergence([1.0] * 100, 1.0, 0.1, 0.04) == pytest.approx(1.7)
    assert results._convergence([0.1] * 100, 1.0, 0.1, 0.04) is None


def test_scenarios_that_differ_in_what_ns2_has_not_are_one():
    stack = {"delayed_ack": {"segments": 2, "timeout": "40 ms"}, "rto_min": "200 ms"}
    rounded = [slow_path(flow("scalable"), tcp={**stack, "quantisation": one}) for one in ("round_up", "round_down")]
    first, second = (ns2.express(one)[0] for one in rounded)
    assert first == second
    assert first.document["tcp"]["rto_min"] == "200 ms"
    other, _ = ns2.express(slow_path(flow("scalable"), tcp={**stack, "rto_min": "1 s"}))
    assert other != first
    assert ns2.express(slow_path(flow("newreno")))[0].document["tcp"].get("recovery") is None


@needs_ns2
def test_a_place_whose_arms_ns2_cannot_distinguish_has_no_verdict(tmp_path):
    lab = Lab(tmp_path, quick=True, engine="ns2")
    arm = Arm("li2006/queue").set({"path.rate": "1 Mbit/s", "duration": "220 s"})
    arms = tuple(arm.set({"tcp.quantisation": f'"{one}"'}) for one in ("round_up", "round_down"))
    place = Place("rounding", arms, lambda up, down: up.summary.goodput_bit_s / down.summary.goodput_bit_s, above=1)
    made = Report(lab).test(Claim("L10", "", "", "", ""), [place])
    assert "cannot be told" in made.findings[""][0].unusable


def test_a_laboratory_keeps_what_its_engine_does_otherwise(tmp_path):
    lab = Lab(tmp_path, engine="ns2")
    for seed in (1, 2):
        lab.scenario(Arm("li2006/symmetric"), seed)
    assert [line.partition(":")[0] for line in lab.differences] == [
        "reno",
        "tcp.quantisation",
        "tcp.rto_variance_min",
        "tcp.delayed_ack.quick",
    ]


@needs_ns2
@pytest.mark.parametrize("segments", [1, 2])
def test_bic_grows_as_fast_as_ours(segments):
    tcp = {"byte_counting": {"abc": {"L": 2}}, "delayed_ack": {"segments": segments}, "rto_min": "200 ms"}
    keys = {"rate": "100 Mbit/s", "rtt": "82 ms", "buffer": "20% bdp", "duration": "60 s", "tcp": tcp}
    scenario = dumbbell(flows=[flow("bic")], measure={"from": "20 s"}, **keys)
    fastest = [run.flows["cwnd_segments"].diff().quantile(0.99) for run in (elephan.run(scenario), ns2.run(scenario))]
    assert fastest[1] == pytest.approx(fastest[0], rel=0.15)


@needs_ns2
@pytest.mark.parametrize("cc", ["reno", "scalable"])
def test_an_ack_of_two_segments_adds_as_much_as_two_acks(cc):
    tcp = {"byte_counting": {"abc": {"L": 2}}, "delayed_ack": {"segments": 2, "timeout": "200 ms"}, "rto_min": "200 ms"}
    scenario = slow_path(flow(cc), tcp=tcp, duration="100 s")
    ours, other = elephan.run(scenario).summary, ns2.run(scenario).summary
    assert other.flows[0].congestion_events == pytest.approx(ours.flows[0].congestion_events, rel=0.15)
