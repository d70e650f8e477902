"""The events of a guest kernel, beside the simulator's."""

import polars as pl
import pytest

from elephan.api.scenario import dumbbell, flow
from elephan.engines.run import run

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("guest")]

RTT = 0.1


def events(engine, duration, buffer, **keys):
    trace = {"events": True}
    made = dumbbell(
        rate="100 Mbit/s", rtt="100 ms", buffer=buffer, duration=duration, engine=engine, trace=trace, **keys
    )
    return run(made)


def test_the_first_round_trips_are_the_simulators():
    """Handshake, initial window and slow start: the same segments in each round trip, at the same times."""
    sent = []
    for engine in ("sim", "kernel"):
        table = events(engine, "650 ms", "100% bdp", flows=[flow("reno", start="0 s")]).events
        # Sequence numbers begin anywhere; the acknowledgment of the SYN tells where.
        origin = table.filter(pl.col("kind") == "ack")["seq"][1]
        offset = (pl.col("seq").cast(pl.Int64) - origin) % 2**32
        sent.append(table.filter(pl.col("kind") == "send").with_columns(offset.alias("offset")))
        counts = sent[-1].group_by((pl.col("time_s") / RTT).floor().cast(int).alias("round")).len().sort("round")
        assert counts.rows()[:5] == [(1, 10), (2, 20), (3, 40), (4, 80), (5, 160)]
    simulated, found = (table.head(310) for table in sent)
    assert simulated.select("offset", "bytes").equals(found.select("offset", "bytes"))
    # Linux acknowledges every segment while its receive window grows, the simulator every second one. So each round trip of
    # the kernel is shorter by the time of a segment. Its acknowledgment of the handshake takes 4 us of the link.
    early = simulated["time_s"] - found["time_s"]
    assert early.max() < 6e-4
    assert early.min() > -5e-6


def test_losses_timeouts_and_ends_are_told():
    flows = [flow("reno", size="3 MB", transfers=1)]
    keys = {"flows": flows, "tcp": {"rto_min": "200 ms", "window_reduction": "prr"}}
    found = events("kernel", "20 s", "20 packets", **keys)
    table = found.events
    kinds = dict(table["kind"].value_counts().iter_rows())
    assert kinds["start"] == kinds["finish"] == 1
    assert kinds["drop"] > 0
    gone = table.filter(pl.col("kind").is_in(["send", "retransmit", "ack"])).height
    assert gone == kinds["receive"] + kinds["drop"]
    summary = found.summary.flows[0]
    assert kinds["retransmit"] >= kinds["drop"]
    assert kinds.get("timeout", 0) == summary.timeouts
    reduced = table.filter(pl.col("kind") == "congestion")
    assert reduced["ssthresh_segments"].is_finite().all()
    finish = table.filter(pl.col("kind") == "finish")["time_s"][0]
    assert abs(finish - found.transfers["end_s"][0]) < 1e-3


def test_a_recovery_and_what_follows_are_the_simulators():
    """The end of slow start: the same packets dropped and resent, and then an acknowledgment for every second segment."""
    keys = {
        "flows": [flow("reno")],
        "tcp": {"rto_min": "200 ms", "window_reduction": "prr", "quantisation": "round_down"},
    }
    simulated, found = (events(engine, "4 s", "20% bdp", **keys).events for engine in ("sim", "kernel"))
    for kind in ("drop", "retransmit", "congestion"):
        assert (simulated["kind"] == kind).sum() == (found["kind"] == kind).sum() > 0
    thresholds = [table.filter(pl.col("kind") == "congestion")["ssthresh_segments"][0] for table in (simulated, found)]
    assert thresholds[0] == pytest.approx(thresholds[1], abs=1)
    for table in (simulated, found):
        late = table.filter(pl.col("time_s") > 3)
        acks, receipts = ((late["kind"] == kind).sum() for kind in ("ack", "receive"))
        assert receipts / acks == pytest.approx(3, rel=0.03)


def test_each_reduction_is_counted():
    """An acknowledgment that ends a reduction and has a mark begins the next: `TCP_INFO` shows one state for both."""
    made = dumbbell(
        rate="100 Mbit/s",
        rtt="22 ms",
        path={"queue": {"name": "threshold", "packets": 20}},
        flows=[flow("reno"), flow("linux:dctcp", start="1 s")],
        duration="6 s",
        engine="kernel",
        tcp={"ecn": True},
        trace={"events": True},
        measure={"from": "2 s"},
    )
    found = run(made)
    reduced = found.events.filter(pl.col("kind") == "congestion")
    for number, summary in enumerate(found.summary.flows):
        times = reduced.filter(pl.col("flow") == number)["time_s"]
        assert summary.congestion_events == ((times > 2) & (times <= 6)).sum() > 0
        for sample in found.flows.filter(pl.col("flow") == number).iter_rows(named=True):
            assert sample["congestion_events"] == (times <= sample["time_s"]).sum()
