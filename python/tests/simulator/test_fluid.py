import json

import numpy as np
import pytest

import elephan
from elephan.api.run import Run
from elephan.engines import integrate

RED = {"name": "red", "min_th": 100, "max_th": 600, "max_p": 0.02, "ecn": False}


def hundred(engine, queue="droptail", rate="300 Mbit/s", cc="reno", **keys):
    return elephan.dumbbell(
        rate=rate,
        rtt="30 ms",
        buffer="50% bdp",
        path={"queue": queue},
        flows=[
            elephan.flow(cc, count=10, rtt=f"{30 + 10 * i} ms", start={"uniform": ["0 s", "4 s"]}) for i in range(10)
        ],
        duration="30 s",
        engine=engine,
        tcp={"delayed_ack": {"segments": 1}},
        measure={"from": "15 s"},
        **keys,
    )


def swing(buffer):
    """The early and late amplitude of Scalable TCP's window about its mean, on a link with loss probability load^buffer."""
    course = integrate.integrate(
        rate=1e5,
        buffer=buffer,
        classes=[
            integrate.FlowClass(
                cc='{"name": "scalable", "lwnd": 1.0}', flows=100, rtt_s=0.1, window=95.0, ssthresh=95.0
            )
        ],
        duration_s=80,
        sample_s=0.02,
        queue="power",
    )
    early = np.ptp(course.windows[(course.time_s > 5) & (course.time_s < 15)])
    late = np.ptp(course.windows[course.time_s > 70])
    return late / early


def test_delays_make_scalable_tcp_swing_where_linear_theory_says():
    # Near the equilibrium y' = -(a/T)(y + B y(t - T)), which oscillates without decay from a B = pi/2 on: B = 157 + 1 for a
    # = 0.01. Kelly's bound of 1/a = 100 is sufficient, so it lies within.
    assert swing(90) < 0.01
    assert swing(140) < 0.5
    assert swing(180) > 0.9


@pytest.mark.parametrize(
    ("cc", "queue", "rate"),
    [
        ("reno", "droptail", "300 Mbit/s"),
        *((cc, RED, "1 Gbit/s") for cc in ("reno", "hstcp", "scalable", "ltcp", "htcp", "cubic")),
    ],
)
def test_the_model_agrees_with_the_simulator_at_a_hundred_flows(cc, queue, rate):
    simulated, model = (elephan.run(hundred(engine, queue, rate, cc)).summary for engine in ("sim", "model"))
    assert model.goodput_bit_s == pytest.approx(simulated.goodput_bit_s, rel=0.1)
    assert model.links[0].queue_mean_packets == pytest.approx(simulated.links[0].queue_mean_packets, rel=0.1)


def test_a_model_run_is_a_results_folder_like_any_other(tmp_path):
    run = elephan.run(hundred("model"))
    again = Run.load(run.save(tmp_path / "run"))
    assert again.provenance["engine"] == "model"
    assert again.summary == run.summary
    simulated = elephan.run(hundred("sim"))
    assert again.flows.columns == simulated.flows.columns
    assert again.queues.columns == simulated.queues.columns
    assert len(again.labels) == 100
    assert json.loads((tmp_path / "run" / "run.json").read_text())["engine"] == "model"


def test_a_million_flows_cost_what_one_costs():
    million = elephan.dumbbell(
        rate="10 Tbit/s", rtt="100 ms", buffer="10% bdp", flows=[elephan.flow("reno", count=1_000_000)],
        duration="20 s", engine="model",
    )  # fmt: skip
    run = elephan.run(million)
    assert run.summary.utilisation > 0.8
    assert run.labels == ("reno x 1000000",)


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ({"flows": [elephan.flow("vegas")]}, 'found "vegas"'),
        ({"flows": [elephan.flow("reno", size="1 MB")]}, "expected data without end, found transfers"),
        ({"flows": [elephan.flow("reno")], "path": {"queue": {"name": "threshold", "packets": 5}}}, "droptail or red"),
    ],
)
def test_what_the_model_cannot_say_is_refused(keys, message):
    scenario = elephan.dumbbell(rate="10 Mbit/s", rtt="10 ms", duration="2 s", engine="model", **keys)
    with pytest.raises(elephan.ScenarioError, match=message):
        elephan.run(scenario)
