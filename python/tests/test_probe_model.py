"""The whole probe over models of links, in virtual time: what it answers where queues are managed, rates policed, delays vary.

The same over links in real time, some of them, is in test_probe.py.
"""

import math
from collections import deque
from types import SimpleNamespace

import numpy as np
import pytest

from elephan.paths.probe import budget, measure, session

MBIT = 1e6
RATE, RTT, BUFFER = 50 * MBIT, 20e-3, 125_000
# The rate at which the near host hands packets to its device, and how exact times of arrival are.
HOST, STAMP_S = 2e9, 2e-6
MTU = 1500


class DropTail:
    """A queue that drops what it has no room for. Sizes are in bytes, times in s."""

    def __init__(self, room):
        self.room = room

    def admits(self, _now, size, queued, _busy_until):
        """Whether a packet may wait that finds so much waiting."""
        return queued + size <= self.room

    def serves(self, _now, _since, _left):
        """Whether a packet that has waited so long, and leaves so much behind it, is sent."""
        return True


class CoDel(DropTail):
    """RFC 8289, section 5."""

    target, interval = 5e-3, 0.1
    above = due = 0.0
    count = last = 0
    dropping = False

    def serves(self, now, since, left):
        if now - since < self.target or left < MTU:
            self.above, self.dropping = 0.0, False
        elif self.above == 0.0:
            self.above = now + self.interval
        elif now >= self.above and (not self.dropping or now >= self.due):
            if self.dropping:
                self.count += 1
            else:
                again = self.count - self.last > 1 and now - self.due < 16 * self.interval
                self.count = self.count - self.last if again else 1
                self.last = self.count
            self.due = (self.due if self.dropping else now) + self.interval / math.sqrt(self.count)
            self.dropping = True
            return False
        return True


class Red(DropTail):
    """Floyd and Jacobson 1993, gentle, with the automatic settings of Floyd, Gummadi and Shenker 2001, section 5."""

    def __init__(self, room, rate):
        super().__init__(room)
        self.per_second = rate / (8 * MTU)
        self.least = max(5.0, 5e-3 * self.per_second / 2)
        self.most, self.weight, self.highest = 3 * self.least, -math.expm1(-1 / self.per_second), 0.1
        self.average, self.count, self.random = 0.0, 0, np.random.default_rng(1)

    def admits(self, now, size, queued, busy_until):
        if busy_until >= now:
            self.average += self.weight * (queued / MTU - self.average)
        else:
            self.average *= math.exp((now - busy_until) * self.per_second * math.log1p(-self.weight))
        if self.average < self.least:
            self.count, part = 0, 0.0
        elif self.average < self.most:
            part = self.highest * (self.average - self.least) / (self.most - self.least)
        else:
            part = self.highest + (1 - self.highest) * (self.average - self.most) / self.most
        self.count += 1
        # Between two drops are 1/p to 2/p packets.
        since = self.count * part
        chance = 0.0 if since < 1 else min(1.0, part / (2 - since)) if since < 2 else 1.0
        if part >= 1 or self.random.random() < chance:
            self.count = 0
            return False
        return super().admits(now, size, queued, busy_until)


class Policer:
    """A token bucket, which is full at first."""

    def __init__(self, rate, burst):
        self.rate, self.burst, self.tokens, self.at = rate, burst, burst, 0.0

    def admits(self, now, size):
        self.tokens = min(self.burst, self.tokens + (now - self.at) * self.rate / 8)
        self.at = now
        if self.tokens < size:
            return False
        self.tokens -= size
        return True


class Path:
    """A link and the server behind it, as `ProbeClient` shows them. On the wire packets are lost, delayed and overtaken."""

    def __init__(self, queue, *, rate=RATE, policer=None, loss=0.0, jitter=0.0, reordered=0.0, extra=0.0, stalls=0.0):
        self.queue, self.rate, self.policer = queue, rate, policer
        self.loss, self.jitter, self.reordered, self.extra = loss, jitter, reordered, extra
        self.random = np.random.default_rng(5)
        self.began = self.now = 1000.0
        self.stalls, self.seconds = stalls, math.inf
        self.free = 0.0
        self.bytes = 0

    def spent(self):
        return self.bytes

    def elapsed(self):
        return self.now - self.began

    def sleep(self, seconds):
        self.now += seconds

    def is_v6(self):
        return False

    def host(self):
        return "far", "6.12", ["cubic"]

    def finish(self):
        pass

    def through_queue(self, sizes, sent):
        """When each packet that is neither too long nor dropped has left the link."""
        left, waiting, queued = [], deque(), 0

        def serve(until):
            nonlocal queued
            while waiting and self.free <= until:
                packet = waiting.popleft()
                queued -= sizes[packet]
                if self.queue.serves(max(self.free, sent[packet]), sent[packet], queued):
                    self.free = max(self.free, sent[packet]) + sizes[packet] * 8 / self.rate
                    left.append((packet, self.free))

        for packet, (size, at) in enumerate(zip(sizes, sent, strict=True)):
            serve(at)
            if size > MTU or (self.policer and not self.policer.admits(at, size)):
                continue
            if self.queue.admits(at, size, queued, self.free):
                waiting.append(packet)
                queued += size
                # An idle link takes it at once.
                serve(at)
        serve(math.inf)
        return left

    def on_wire(self, left):
        """When, and in which order, packets arrive."""
        arrived, earliest = [], 0.0
        for packet, at in left:
            if self.random.random() < self.loss:
                continue
            earliest = max(earliest, at + RTT / 2 + self.jitter * self.random.random())
            late = self.extra if self.random.random() < self.reordered else 0.0
            arrived.append((earliest + late + abs(self.random.normal(0, STAMP_S)), packet))
        return sorted(arrived)

    def stream(self, sizes, due_ns, echo, linger):
        if self.elapsed() + due_ns[-1] * 1e-9 + linger > self.seconds:
            raise PermissionError("budget")
        self.now += self.stalls
        begins, sent, free = self.now + RTT, [], 0.0
        for size, due in zip(sizes, due_ns, strict=True):
            free = max(begins + due * 1e-9, free)
            sent.append(free)
            free += size * 8 / HOST
        arrived = self.on_wire(self.through_queue(sizes, sent))
        order = np.array([packet for _, packet in arrived], int)
        at = np.array([time for time, _ in arrived])
        back = at + RTT / 2 + np.array([sizes[packet] for packet in order]) * 8 / self.rate
        self.now = back.max() if echo and len(back) == len(sizes) else free + linger
        cost = sum(sizes) + 40 * len(at) + (sum(sizes[packet] for packet in order) if echo else 0)
        self.bytes += cost

        def nanos(times):
            return np.round(np.asarray(times) * 1e9).astype(np.uint64)

        return {
            # What is too long does not leave this host.
            "sent_ns": nanos(np.where(np.array(sizes) > MTU, 0.0, sent)),
            "arrived": order,
            "arrived_ns": nanos(at),
            "echoed_ns": nanos(at) if echo else np.zeros(len(at), np.uint64),
            "back": order if echo else order[:0],
            "back_ns": nanos(back) if echo else nanos(back[:0]),
            "stamped": True,
            "overflowed": 0,
            "bytes": cost,
        }


@pytest.fixture
def probed(monkeypatch):
    """`probed(path)` returns what the probe finds of it, with so many seconds and bytes."""

    def over(path, seconds=18.0, most=40_000_000):
        monkeypatch.setattr(session, "time", SimpleNamespace(sleep=path.sleep))
        one, path.seconds = session.Session(path, most, seconds), seconds
        found = measure.measure(one, budget.plan(most, seconds, []), [], "a model", lambda _: None).estimates
        assert path.stalls or path.elapsed() <= seconds
        assert path.spent() <= most
        return found

    return over


def holds(value, truth, within):
    """Whether a figure is near to the truth, and its interval holds it."""
    assert value.value == pytest.approx(truth, rel=within)
    assert value.low <= truth <= value.high


def right(found, loss=0.0):
    """Rate, delay and random loss are right, whatever the queue."""
    assert found.rate_bit_s.value == pytest.approx(RATE, rel=0.03)
    assert found.base_rtt_s.value == pytest.approx(RTT, rel=0.01)
    assert found.loss.low <= loss <= found.loss.high


@pytest.mark.parametrize("loss", [0.0, 2e-3])
def test_a_plain_queue(probed, loss):
    found = probed(Path(DropTail(BUFFER), loss=loss))
    right(found, loss)
    holds(found.buffer_bytes, BUFFER, 0.05)
    assert found.jitter_s.value is None
    assert found.notes == []


@pytest.mark.parametrize("queue", [CoDel(10**6), Red(10**6, RATE)])
def test_a_managed_queue_has_no_buffer_but_this_reason(probed, queue):
    found = probed(Path(queue))
    right(found)
    assert found.buffer_bytes.best is None
    assert "the queue is managed (AQM)" in found.buffer_bytes.absent


@pytest.mark.parametrize("room", [100_000, 250_000])
def test_a_short_overload_may_fill_the_buffer_of_red(probed, room):
    # Its average covers a second: until it grows, the queue is a plain one.
    found = probed(Path(Red(room, RATE)))
    right(found)
    if found.buffer_bytes.value is None:
        assert "the queue is managed (AQM)" in found.buffer_bytes.absent
    else:
        holds(found.buffer_bytes, room, 0.05)


@pytest.mark.parametrize(("rate", "burst"), [(200 * MBIT, 30_000), (100 * MBIT, 6_000), (100 * MBIT, 300_000)])
def test_a_policer_is_told_from_the_rate_of_the_link(probed, rate, burst):
    # A bucket of 300 kB lasts longer than a point of the curve.
    found = probed(Path(DropTail(500_000), rate=rate, policer=Policer(RATE, burst)))
    right(found)
    assert found.rate_bit_s.low <= RATE <= found.rate_bit_s.high
    assert found.links_bit_s.value == pytest.approx(rate, rel=0.03)
    assert found.burst_bytes.value == pytest.approx(burst, rel=0.05, abs=MTU)
    assert found.burst_bytes.low <= burst <= found.burst_bytes.high
    assert found.buffer_bytes.best is None
    assert "polices its rate" in found.buffer_bytes.absent
    assert found.cross_bit_s.best is None
    assert any("polices what is sent for longer" in note for note in found.notes)


def test_a_policer_below_the_load_of_the_loss_test_leaves_no_loss(probed):
    found = probed(Path(DropTail(500_000), rate=500 * MBIT, policer=Policer(RATE, 300_000)), most=200_000_000)
    assert found.rate_bit_s.value == pytest.approx(RATE, rel=0.03)
    assert found.loss.best is None
    assert "polices its rate" in found.loss.absent


def test_jitter_does_not_lengthen_the_buffer(probed):
    found = probed(Path(DropTail(BUFFER), jitter=2e-3))
    right(found)
    assert found.jitter_s.value == pytest.approx(2e-3, rel=0.1)
    holds(found.buffer_bytes, BUFFER, 0.1)


def test_reordering_is_counted_and_changes_nothing_else(probed):
    found = probed(Path(DropTail(BUFFER), reordered=0.01, extra=5e-3))
    right(found)
    assert found.reordered.low <= 0.01 <= found.reordered.high
    holds(found.buffer_bytes, BUFFER, 0.05)


def test_a_busy_host_that_spends_the_time_leaves_what_was_found(probed):
    # Too few trains for more than a bound, and too little time for all loads.
    found = probed(Path(DropTail(BUFFER), stalls=0.35))
    assert (found.rate_bit_s.value, found.rate_bit_s.low) == (None, pytest.approx(RATE, rel=0.03))
    assert "too few trains" in found.rate_bit_s.absent
    assert found.loss.low == 0
    assert found.buffer_bytes.best is None
