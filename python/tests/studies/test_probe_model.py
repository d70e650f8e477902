"""The whole probe over the links of scenarios, in virtual time.

What does it answer where queues are managed, rates are policed, and delays vary?
"""

from types import SimpleNamespace

import pytest

from elephan import _core
from elephan.paths.probe import budget, measure, session

MBIT = 1e6
RATE, RTT, BUFFER = 50 * MBIT, 20e-3, 125_000
# The rate at which the near host hands packets to its device.
HOST = 2_000_000_000
MTU = 1500


def path_of(**keys):
    """The path of a scenario: a plain queue unless it says otherwise."""
    return {"rate": f"{RATE} bit/s", "rtt": f"{RTT} s", "buffer": f"{BUFFER} B", **keys}


def random_loss(probability):
    """The keys of a path that loses packets at random."""
    return {"loss": {"name": "random", "probability": probability}} if probability else {}


class Busy:
    """A client whose host stands still before each stream."""

    def __init__(self, client, stall_s):
        self.client, self.stall_s = client, stall_s

    def __getattr__(self, name):
        return getattr(self.client, name)

    def stream(self, *arguments):
        self.client.sleep(self.stall_s)
        return self.client.stream(*arguments)


class Ending:
    """A client whose server ends before so many streams."""

    def __init__(self, client, streams):
        self.client, self.left = client, streams

    def __getattr__(self, name):
        return getattr(self.client, name)

    def stream(self, *arguments):
        self.left -= 1
        if self.left < 0:
            raise OSError("peer: expected the session to go on, found it closed")
        return self.client.stream(*arguments)


@pytest.fixture
def probed(monkeypatch):
    """`probed(path)` returns what the probe finds of it, with so many seconds and bytes."""

    def over(path, seconds=18.0, most=40_000_000, stall_s=0.0, streams=None, **host):
        scenario = {"name": "a path", "duration": "1 s", "path": path, "flow": [{"cc": "reno"}]}
        virtual = _core.VirtualProbe(_core.Scenario(scenario), most, seconds, host_rate=HOST, **host)
        monkeypatch.setattr(session, "time", SimpleNamespace(sleep=virtual.sleep))
        ending = virtual if streams is None else Ending(virtual, streams)
        client = session.Session(Busy(virtual, stall_s) if stall_s else ending, most, seconds)
        found = measure.measure(client, budget.plan(most, seconds, []), [], "a path", lambda _: None).estimates
        spent_bytes, spent_s = client.spent
        assert stall_s or spent_s <= seconds
        assert spent_bytes <= most
        return found

    return over


def holds(value, truth, within):
    """Whether a figure is near to the truth, and its interval holds it."""
    assert value.value == pytest.approx(truth, rel=within)
    assert value.low <= truth <= value.high


def right(found, loss=0.0, delay_within=1e-6):
    """Rate, delay and random loss are right, whatever the queue."""
    assert found.rate_bit_s.value == pytest.approx(RATE, rel=2e-3)
    assert found.base_rtt_s.value == pytest.approx(RTT, rel=delay_within)
    assert found.loss.low <= loss <= found.loss.high
    assert found.mtu_bytes.value == MTU


@pytest.mark.parametrize("loss", [0.0, 2e-3])
def test_a_plain_queue(probed, loss):
    found = probed(path_of(**random_loss(loss)))
    right(found, loss)
    assert found.rate_bit_s.value == pytest.approx(RATE, rel=1e-9)
    holds(found.buffer_bytes, BUFFER, 1e-3)
    assert found.jitter_s.value is None
    assert found.notes == []


def is_managed(found):
    """Whether the figure of the buffer is absent for this reason."""
    return found.buffer_bytes.best is None and "the queue is managed (AQM)" in found.buffer_bytes.absent


# CoDel with a shorter interval drops more often.
@pytest.mark.parametrize("queue", ["codel", {"name": "codel", "interval": "20 ms"}, "red", "pie"])
def test_a_managed_queue_has_no_buffer_but_this_reason(probed, queue):
    found = probed(path_of(buffer="1 MB", queue=queue))
    right(found)
    assert is_managed(found)


@pytest.mark.parametrize(("room", "managed"), [(100_000, False), (250_000, True)])
def test_a_short_overload_may_fill_the_buffer_of_red(probed, room, managed):
    # Its average covers a second: until it grows, the queue is a plain one.
    found = probed(path_of(buffer=f"{room} B", queue="red"))
    right(found)
    assert is_managed(found) == managed
    if not managed:
        holds(found.buffer_bytes, room, 0.01)


def policed(rate, burst):
    """A link of a rate, and a policer before it."""
    police = [{"rate": f"{RATE} bit/s", "burst": f"{burst} B"}]
    return path_of(rate=f"{rate} bit/s", buffer="500 kB", police=police)


@pytest.mark.parametrize(("rate", "burst"), [(200 * MBIT, 30_000), (100 * MBIT, 6_000), (100 * MBIT, 300_000)])
def test_a_policer_is_told_from_the_rate_of_the_link(probed, rate, burst):
    # A bucket of 300 kB lasts longer than a point of the curve.
    found = probed(policed(rate, burst))
    right(found)
    assert found.rate_bit_s.low <= RATE <= found.rate_bit_s.high
    assert found.links_bit_s.value == pytest.approx(rate, rel=1e-6)
    assert found.burst_bytes.value == pytest.approx(burst, abs=MTU)
    assert found.burst_bytes.low <= burst <= found.burst_bytes.high
    assert found.buffer_bytes.best is None
    assert "polices its rate" in found.buffer_bytes.absent
    assert found.cross_bit_s.best is None
    assert any("polices what is sent for longer" in note for note in found.notes)


def test_a_policer_below_the_load_of_the_loss_test_leaves_no_loss(probed):
    found = probed(policed(500 * MBIT, 300_000), most=200_000_000)
    assert found.rate_bit_s.value == pytest.approx(RATE, rel=1e-3)
    assert found.loss.best is None
    assert "polices its rate" in found.loss.absent


def test_jitter_does_not_lengthen_the_buffer(probed):
    found = probed(path_of(vary={"name": "jitter", "max": "2 ms"}))
    # The shortest of some hundred delays is near to the shortest there is.
    right(found, delay_within=5e-3)
    assert found.jitter_s.value == pytest.approx(2e-3, rel=0.06)
    holds(found.buffer_bytes, BUFFER, 0.02)


def test_reordering_is_counted_and_changes_nothing_else(probed):
    found = probed(path_of(vary={"name": "reorder", "probability": 0.01, "extra": "5 ms"}))
    right(found)
    assert found.reordered.low <= 0.01 <= found.reordered.high
    holds(found.buffer_bytes, BUFFER, 5e-3)


def test_a_busy_host_that_spends_the_time_leaves_what_was_found(probed):
    # Too few trains for more than a bound, and too little time for all loads.
    found = probed(path_of(), stall_s=0.35)
    assert (found.rate_bit_s.value, found.rate_bit_s.low) == (None, pytest.approx(RATE, rel=1e-6))
    assert "too few trains" in found.rate_bit_s.absent
    assert found.loss.low == 0
    assert found.buffer_bytes.best is None


def test_a_host_that_stands_still_now_and_then_widens_the_intervals(probed):
    # Streams that it interrupts have a gap. What was due meanwhile leaves later, and never as a burst.
    found = probed(path_of(), stalls=[(0.25 * number, 0.02) for number in range(80)])
    assert found.base_rtt_s.value == pytest.approx(RTT, rel=1e-6)
    assert found.rate_bit_s.value == pytest.approx(RATE, rel=0.05)
    assert found.rate_bit_s.high == pytest.approx(RATE, rel=1e-9)
    holds(found.buffer_bytes, BUFFER, 0.06)
    assert found.loss.value == 0


def test_a_black_hole_is_found_by_what_arrives(probed):
    found = probed(path_of(), mtu=4000, path_mtu=MTU)
    right(found)
    assert (found.mtu_bytes.value, found.mtu_bytes.high) == (MTU, MTU)
    assert any("packets longer than 1500 bytes leave this host and do not arrive" in note for note in found.notes)


def test_a_drift_of_the_clocks_is_found_and_removed_from_delays(probed):
    found = probed(path_of(), drift_ppm=30)
    right(found)
    # The buffer is seen against the shortest delay of the session, so what the clocks gain meanwhile is in it: 0.4 ms of 20 ms.
    assert found.buffer_bytes.value == pytest.approx(BUFFER, rel=0.03)
    assert "the clocks drift apart by 30.0 us in a second; this was removed" in found.notes


def test_a_session_that_ends_leaves_what_was_found(probed):
    # Of 29 streams, the 28th and the 29th find the buffer, and before them the curve; the rate is known before random loss.
    for streams in (20, 28):
        found = probed(path_of(), streams=streams)
        right(found)
        assert found.buffer_bytes.absent == "peer: expected the session to go on, found it closed"
    with pytest.raises(OSError, match="found it closed"):
        probed(path_of(), streams=10)
