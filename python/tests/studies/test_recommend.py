import json

import pytest
from typer.testing import CliRunner

import elephan
from elephan.cli import app
from elephan.studies import recommend as rules
from elephan.studies.recommend import recommend, weights_of
from elephan.studies.theory import SETTLED_S, epoch_s

PATH = {"rate": "20 Mbit/s", "rtt": "40 ms", "buffer": "13packets"}


def test_weights_follow_the_order_of_the_thesis_and_can_be_set():
    assert weights_of("internet", {}) == {"fairness": 3, "throughput": 2, "overhead": 1}
    assert weights_of("dedicated", {"convergence": 2}) == {"throughput": 3, "overhead": 2, "convergence": 2}
    assert weights_of("dedicated", {"overhead": 0}) == {"throughput": 3}
    for shared, weights, expected in (
        ("mars", {}, "--shared: expected one of internet, dedicated, dedicated-shared, found 'mars'"),
        (
            "internet",
            {"beauty": 1},
            "--weight: expected one of convergence, fairness, overhead, throughput, found 'beauty'",
        ),
        ("internet", {"fairness": -1}, "--weight: expected 0 or more for fairness, found -1"),
        ("dedicated", {"throughput": 0, "overhead": 0}, "--weight: expected a criterion that counts, found none"),
    ):
        with pytest.raises(elephan.ScenarioError, match=expected):
            weights_of(shared, weights)


def test_an_epoch_is_the_climb_back_to_a_full_buffer():
    # By hand: 1 Gbit/s, 120 ms and 500 packets hold 10,500 packets. Half of them, one in each round trip of 126 ms.
    assert epoch_s("reno", 1e9 / 12e3, 0.12, 500) == pytest.approx(5250 * 0.126)


@pytest.mark.parametrize("cc", ["reno", "hstcp", "scalable", "htcp", "bic", "ltcp", "cubic"])
def test_the_first_flow_is_settled_when_it_counts_and_loses_once_in_an_epoch(cc):
    path = {"rate": "100 Mbit/s", "rtt": "160 ms", "buffer": "65packets"}
    first, epoch = rules._first(cc, **path)
    assert epoch == pytest.approx(epoch_s(cc, 100e6 / 12e3, 0.16, 65))
    # The mean window of the first epochs equals that of later ones, and losses are counted over both.
    epochs = 2 if cc == "reno" else 8
    ends = SETTLED_S + 2 * epochs * epoch
    one = elephan.dumbbell(
        flows=[first],
        duration=f"{ends:.3f} s",
        measure={"from": f"{SETTLED_S:g} s"},
        trace={"interval": "0.1 s"},
        **path,
    )
    run = elephan.run(one)
    assert run.summary.flows[0].congestion_events == pytest.approx(2 * epochs, rel=0.25)
    time_s, cwnd = run.columns["flows"]["time_s"], run.columns["flows"]["cwnd_segments"]
    middle = SETTLED_S + epochs * epoch
    early, late = (cwnd[(time_s > a) & (time_s <= b)].mean() for a, b in ((SETTLED_S, middle), (middle, ends)))
    assert early == pytest.approx(late, rel=0.03)


def test_the_second_flow_starts_anywhere_in_an_epoch_of_the_settled_first(monkeypatch):
    seen = []

    def run_many(scenarios, **keys):
        seen.extend(scenarios)
        return elephan.run_many([one.with_settings({"duration": "125 s"}) for one in scenarios[:1]], **keys) * len(
            scenarios
        )

    monkeypatch.setattr(rules, "run_many", run_many)
    recommend(**PATH, shared="internet", cc=("reno", "htcp"), repeats=2)
    for one in seen:
        first, *others = one.document["flow"]
        epoch = epoch_s(first["cc"], 20e6 / 12e3, 0.04, 13)
        begins, ends = (
            elephan._core.seconds(text) for text in (one.document["measure"]["from"], one.document["duration"])
        )
        assert ends - begins >= max(epoch / 2 if others else epoch, 120) - 2e-3
        assert begins == pytest.approx(SETTLED_S + (epoch if others else 0), abs=1e-3)
        for other in others:
            low, high = (elephan._core.seconds(text) for text in other["start"]["uniform"])
            assert (low, high) == (SETTLED_S, pytest.approx(SETTLED_S + epoch, abs=1e-3))
            assert high <= begins
    # For each of two algorithms, one run alone and two of the other experiments. Standard TCP beside itself is its
    # friendliness.
    assert len(seen) == 2 * (1 + 3 * 2) - 2
    halves = [one.document["flow"][1]["rtt"] for one in seen if "rtt" in (one.document["flow"][1:] or [{}])[0]]
    assert halves.count("20 ms") == 4


def test_a_duration_too_short_for_the_path_is_refused():
    # By hand: 79.7 packets at 47.8 ms make 39.8 round trips or 1.9 s; a second flow adds half of that.
    for shared, least in (("dedicated", 102), ("internet", 103)):
        expected = (
            rf'--duration: expected "{least} s" or more \(100 s to settle; epochs of reno last 1.9 s .*, found "60 s"'
        )
        with pytest.raises(elephan.ScenarioError, match=expected):
            recommend(**PATH, shared=shared, cc=("reno", "scalable"), duration="60 s")


def test_a_recommendation_ranks_by_evidence():
    ranked = recommend(**PATH, shared="dedicated-shared", cc=("reno", "scalable"), duration="110 s", repeats=2)
    assert {r.cc for r in ranked} == {"reno", "scalable"}
    assert ranked[0].score.mean >= ranked[1].score.mean
    assert set(ranked[0].scores) == {"throughput", "fairness", "convergence"}
    # There is no Standard TCP on a dedicated circuit.
    assert set(ranked[0].evidence) == {
        "utilisation, alone",
        "utilisation, two",
        "fairness, two",
        "RTT fairness",
        "fair share",
    }
    by_name = {r.cc: r for r in ranked}
    assert by_name["scalable"].scores["throughput"].mean > by_name["reno"].scores["throughput"].mean
    for r in ranked:
        parts = [r.evidence[name].mean for name in ("fairness, two", "RTT fairness")]
        assert r.scores["fairness"].mean == pytest.approx(sum(parts) / 2)
        weighted = 3 * r.scores["throughput"].mean + 2 * r.scores["fairness"].mean + r.scores["convergence"].mean
        assert r.score.mean == pytest.approx(weighted / 6)
        assert r.score.half_width is not None
        assert r.apart(r) is False
    assert ranked[0].apart(ranked[1]) is ranked[1].apart(ranked[0])


def test_the_command_takes_a_path_as_one_writes_it():
    path = [f"--{key}={value}" for key, value in (PATH | {"shared": "dedicated", "cc": "reno,scalable"}).items()]
    result = CliRunner().invoke(
        app, ["model", "rank", *path, "--weight", "fairness=1", "--repeat", "2", "--duration", "110 s"]
    )
    assert result.exit_code == 0, result.output
    assert "±" in result.stdout
    assert "Li 2006, Table 10.1 recommends for such paths: bic, fast, htcp" in result.stdout
    result = CliRunner().invoke(
        app, ["model", "rank", *path, "--repeat", "1", "--duration", "110 s", "--format", "json"]
    )
    rows = json.loads(result.stdout)
    assert {row["cc"] for row in rows} == {"reno", "scalable"}
    names = ["score", "throughput", "overhead", "utilisation, alone", "retransmitted, alone"]
    assert [row["metric"] for row in rows] == names * 2
    assert (rows[0]["low"], rows[0]["high"], rows[0]["values"]) == (None, None, 1)
