"""The probe: its estimators on series that are known, and both ends in real time.

The whole of it in virtual time is in test_probe_model.py.
"""

import contextlib
import json
import math
import os
import re
import subprocess

import numpy as np
import pytest
from command_line import ELEPHAN
from hypothesis import example, given, settings
from hypothesis import strategies as st

from elephan import ScenarioError, _core
from elephan.api.run import Run
from elephan.api.scenario import load
from elephan.cli.probe import resolved
from elephan.engines.emulate import FAR, links
from elephan.paths.estimates import Value, absent, read
from elephan.paths.probe import budget, buffer, curve, delays, loss, mtu, tcp, trains
from elephan.paths.probe.figures import drift, median, share
from elephan.paths.probe.session import Seen, Session

MBIT = 1e6
patient = settings(max_examples=30)


def link(sizes, sent, rate, base, *, buffer_bytes=math.inf, lost=(), offset=0.0, drifts=0.0, jitter=0.0, echo=False):
    """What a stream shows of a link with a rate (bit/s), a delay (s) and a buffer, and of clocks that differ."""
    random = np.random.default_rng(7)
    sizes, sent = np.asarray(sizes), np.asarray(sent, float)
    arrived = np.full(len(sizes), np.nan)
    starts: list[tuple[float, int]] = []
    free = -math.inf
    for index, (size, at) in enumerate(zip(sizes, sent, strict=True)):
        starts = [one for one in starts if one[0] > at]
        if sum(waits for _, waits in starts) + (size if free > at else 0) > buffer_bytes:
            continue
        start = max(free, at)
        starts.append((start, size))
        free = start + size * 8 / rate
        if index not in lost:
            arrived[index] = (free + base + jitter * random.random()) * (1 + drifts) + offset
    back = arrived.copy()
    if echo:
        back = (arrived - offset) / (1 + drifts) + 1e-3 + sizes * 8 / rate + base
    there = np.flatnonzero(~np.isnan(arrived))
    order = there[np.argsort(arrived[there], kind="stable")]
    echoed = arrived + 1e-3 if echo else np.full(len(sizes), np.nan)
    return Seen(sizes, sent - sent[0], sent, arrived, echoed, back, order, True, 0, int(sizes.sum()))


def even(size, gap, count):
    """Evenly spaced packets."""
    return np.full(count, size), np.arange(count) * gap


@patient
@given(st.integers(0, 2000), st.integers(1, 2000))
def test_the_interval_of_a_share_holds_the_share(count, more):
    p, low, high = share(count, count + more)
    assert 0 <= low <= p <= high <= 1
    assert high > low


def test_the_interval_of_a_share_is_wilsons():
    # Newcombe 1998, table I, case 1: 81 of 263, Wilson's score without correction.
    p, low, high = share(81, 263)
    assert (round(p, 4), round(low, 4), round(high, 4)) == (0.3080, 0.2553, 0.3662)
    # Case 3: none of 20.
    assert [round(one, 4) for one in share(0, 20)] == [0.0, 0.0, 0.1611]


@patient
@given(st.integers(0, 2**32))
def test_the_interval_of_a_median_covers_it_about_as_often_as_it_says(seed):
    random = np.random.default_rng(seed)
    hits = [low <= 0 <= high for _, low, high in (median(random.standard_normal(15)) for _ in range(200))]
    assert sum(hits) >= 175


def test_the_drift_of_clocks_is_found_below_jitter():
    """The error is a twentieth of what jitter alone would be over 10 s, 1e-5, and has no sign."""
    random = np.random.default_rng(1)
    errors = []
    for gains in random.uniform(-1e-4, 1e-4, 400):
        at = np.sort(random.uniform(0, 10, 800))
        delay = 0.02 + random.exponential(1e-4, 800) + gains * at
        errors.append(drift(at, delay) - gains)
    assert np.sqrt(np.mean(np.square(errors))) < 6e-7
    assert abs(np.mean(errors)) < 1e-7


@pytest.mark.parametrize("drifts", [0.0, 5e-5])
def test_delays_give_base_and_slope_whatever_the_clocks(drifts):
    sizes = np.random.default_rng(1).permutation(np.resize([64, 300, 600, 900, 1200, 1500], 600))
    seen = link(sizes, np.arange(600) * 0.01, 50 * MBIT, 20e-3, offset=-3600.0, drifts=drifts, jitter=1e-4, echo=True)
    found = delays.of_series(seen)
    assert found.round_trip.low <= found.round_trip.value <= found.round_trip.high
    assert found.round_trip.value == pytest.approx(40e-3, rel=2e-3)
    # Of one way: 50 Mbit/s.
    slope = found.figures["forward_s_per_byte"]
    assert 8 / slope.value == pytest.approx(50 * MBIT, rel=0.15)
    assert found.reordered.value == 0
    assert found.duplicated.value == 0
    assert found.jitter.value is None


def test_jitter_is_told_where_it_is_more_than_the_hosts():
    sizes = np.resize([64, 600, 1500], 600)
    seen = link(sizes, np.arange(600) * 0.01, 50 * MBIT, 20e-3, jitter=4e-3, echo=True)
    assert delays.of_series(seen).jitter.value == pytest.approx(4e-3, rel=0.1)


@patient
@given(st.floats(1, 1000), st.floats(0, 3600))
def test_trains_give_the_rate(mbit, offset):
    found = [link(*even(1500, 1e-7, 50), mbit * MBIT, 0.01, offset=offset, buffer_bytes=1500 * 20) for _ in range(9)]
    rate = trains.of_series(found, 1)
    # A train that loses packets arrives as fast.
    assert rate.value == pytest.approx(mbit * MBIT, rel=0.01)
    assert rate.low <= rate.value <= rate.high


def test_trains_that_were_not_faster_than_the_path_are_only_a_bound():
    found = trains.of_series([link(*even(1500, 1e-4, 50), 1000 * MBIT, 0.01) for _ in range(9)], 1)
    assert found.value is None
    assert found.low == pytest.approx(120 * MBIT, rel=0.01)


def test_one_disturbed_train_in_four_does_not_matter():
    good = [link(*even(1500, 1e-6, 50), 50 * MBIT, 0.01) for _ in range(9)]
    bad = [link(*even(1500, 3e-4, 50), 50 * MBIT, 0.01) for _ in range(3)]
    found = trains.of_series(good + bad, 1)
    assert found.method == "median dispersion of 9 packet trains, of 12 sent"
    assert found.value == pytest.approx(50 * MBIT, rel=1e-6)


def points(rate, others=0.0):
    """The curve of a link that others use; they take their share of an overload."""
    made = []
    for part in curve.LOADS:
        offered = part * rate
        got = min(offered, rate * offered / (offered + others))
        made.append(curve.Point(12000 / offered, offered, got, 1 - got / offered, 0.0, 0.0))
    return made


def test_the_curve_shows_what_others_leave():
    alone = curve.of_points(points(100 * MBIT), 1)
    assert alone.available.value == pytest.approx(95 * MBIT)
    assert alone.available.high == pytest.approx(105 * MBIT)
    assert alone.saturated.value == pytest.approx(100 * MBIT)
    shared = points(100 * MBIT, others=30 * MBIT)
    assert curve.of_points(shared, 1).available.value == pytest.approx(70 * MBIT)
    capacity = Value(unit="bit/s", value=100 * MBIT, low=99 * MBIT, high=101 * MBIT)
    assert curve.cross(shared, capacity, 1).value == pytest.approx(30 * MBIT, rel=1e-6)
    assert curve.cross(points(100 * MBIT), capacity, 1).value == 0


@patient
@given(st.floats(5, 200), st.integers(20_000, 500_000), st.integers(0, 5))
def test_an_overload_gives_the_buffer(mbit, size, seed):
    gap = 1500 * 8 / (mbit * MBIT * buffer.OVERLOAD)
    count = int(3 * (size / 1500) / (1 - 1 / buffer.OVERLOAD)) + 300
    lost = set(np.flatnonzero(np.random.default_rng(seed).random(count) < 0.01).tolist())
    seen = link(*even(1500, gap, count), mbit * MBIT, 0.01, buffer_bytes=size, lost=lost)
    full = buffer.plateau(seen)
    rate = Value(unit="bit/s", value=mbit * MBIT, low=mbit * MBIT, high=mbit * MBIT)
    found, _ = buffer.of_plateau(seen.forward[full] - np.nanmin(seen.forward), rate, 1500, 1)
    assert found.value == pytest.approx(size, abs=max(0.05 * size, 1600))
    assert found.low <= size <= found.high


RATE = Value(unit="bit/s", value=50 * MBIT, low=50 * MBIT, high=50 * MBIT)
# None of 6000 packets.
NO_LOSS = Value(unit="1", value=0.0, low=0.0, high=6e-4)


@pytest.mark.parametrize("seconds", [0.9, 2.7])
def test_a_queue_that_drops_while_it_has_room_is_managed(seconds):
    gap = 1500 * 8 / (RATE.value * buffer.OVERLOAD)
    path = {"rate": "50 Mbit/s", "rtt": "40 ms", "buffer": "10 MB", "queue": "codel"}
    scenario = {"name": "codel", "duration": "1 s", "path": path, "flow": [{"cc": "reno"}]}
    session = Session(_core.VirtualProbe(_core.Scenario(scenario), 10**9, 60.0), 10**9, 60.0)
    seen = session.even("buffer", 1500, gap, int(seconds / gap))
    most = (np.nanmax(seen.forward) - np.nanmin(seen.forward)) * RATE.value / 8
    found = buffer.managed([seen], absent("B", "not filled", low=float(most)), RATE, NO_LOSS)
    assert (found.value, found.low) == (None, None)
    assert "the queue is managed (AQM)" in found.absent
    # If as many are lost without a queue, nothing is known of it.
    often = Value(unit="1", value=0.02, low=0.01, high=0.03)
    assert buffer.managed([seen], absent("B", "not filled", low=float(most)), RATE, often).low == most


@patient
@given(st.integers(20_000, 500_000), st.integers(0, 5), st.booleans())
def test_a_plain_queue_is_not_taken_for_a_managed_one(size, seed, stalls):
    gap = 1500 * 8 / (RATE.value * buffer.OVERLOAD)
    sizes, sent = even(1500, gap, int(4.5 * size / 1500) + 300)
    if stalls:
        # This host stood still for 20 ms, and sent what was due at once.
        middle = len(sent) // 2
        sent[middle:] = np.maximum(sent[middle:], sent[middle] + 0.02 + 1e-6 * np.arange(len(sent) - middle))
    lost = set(np.flatnonzero(np.random.default_rng(seed).random(len(sent)) < 1e-4).tolist())
    seen = link(sizes, sent, RATE.value, 0.02, buffer_bytes=size, lost=lost)
    held = Value(unit="B", value=size, low=size, high=size)
    assert buffer.managed([seen], held, RATE, NO_LOSS) is held


def transfer(queue_bytes, events, cc="cubic"):
    """A transfer of ten samples, with so much in the queue and so many reductions until each."""
    srtt = 0.04 + np.array(queue_bytes) * 8 / RATE.value
    flows = {"srtt_s": srtt, "congestion_events": np.array(events), "sent_bytes": np.full(len(srtt), 10**7)}
    return tcp.Transfer(cc, False, RATE, {"flows": flows})


def test_tcp_that_never_fills_the_queue_shows_that_it_may_be_managed():
    held = Value(unit="B", value=500_000, low=490_000, high=510_000)
    base = Value(unit="s", value=0.04)
    events = [0, 0, 1, 1, 2, 2, 3, 3, 4, 4]
    # CoDel lets 5 ms of data wait, and sometimes a little more.
    short = transfer([20_000, 40_000] * 5, events)
    note = tcp.queue_note([short], held, RATE, base, NO_LOSS)
    assert "tcp cubic reduced its window 4 times" in note
    assert "may be managed (AQM)" in note
    full = transfer([480_000, 100_000] * 5, events)
    assert tcp.queue_note([full], held, RATE, base, NO_LOSS) == ""
    # Random losses explain as many; BBR does not fill queues; a buffer that was never filled tells nothing.
    assert tcp.queue_note([short], held, RATE, base, Value(unit="1", value=1e-3)) == ""
    assert tcp.queue_note([transfer([0] * 10, events, "bbr")], held, RATE, base, NO_LOSS) == ""
    assert tcp.queue_note([short], absent("B", "not filled", low=1e5), RATE, base, NO_LOSS) == ""


def test_random_losses_alone_are_no_full_queue():
    lost = set(np.flatnonzero(np.random.default_rng(3).random(2000) < 0.02).tolist())
    seen = link(*even(1500, 1e-4, 2000), 1000 * MBIT, 0.01, lost=lost)
    assert not buffer.plateau(seen).any()


def test_losses_of_a_burst_of_this_host_are_not_random_ones():
    sizes, sent = even(1500, 1e-3, 1000)
    # The host stood still, and sent what was due at once.
    sent[400:450] = sent[450] + np.arange(50) * 1e-6
    sent[450:] = np.maximum(sent[450:], sent[449])
    seen = link(sizes, sent, 50 * MBIT, 0.01, buffer_bytes=6000, lost={10, 20})
    assert seen.lost > 30
    found = loss.of_series(Seen(**{**vars(seen), "due": np.arange(1000) * 1e-3}))
    assert found.value == pytest.approx(2 / 950, rel=0.05)


def test_order_and_duplicates_are_counted():
    sizes, sent = even(100, 0.01, 5)
    nothing = np.full(5, np.nan)
    seen = Seen(sizes, sent, sent, sent, nothing, nothing, np.array([0, 2, 1, 1, 3, 4, 0]), True, 0, 0)
    assert (seen.reordered, seen.duplicated, seen.lost) == (1, 2, 0)


class Passing:
    """A session over a path that passes packets up to a size, and nothing during one outage. Times are in s."""

    least_size, round_trip = 100, 0.0

    def __init__(self, longest, outage=(math.inf, math.inf)):
        self.longest, self.outage, self.now, self.cost = longest, outage, 0.0, {"mtu": 0, "delays": 0}
        self.client = self

    def spent(self):
        return self.spent_on("mtu")

    def spent_on(self, test):
        return self.cost[test]

    def stream(self, test, sizes, gaps, echo=False):
        sent = self.now + np.cumsum(gaps)
        self.now = sent[-1] + 0.1
        self.cost[test] += int(sizes.sum()) * (2 if echo else 1)
        passes = (sizes <= self.longest) & ~((sent >= self.outage[0]) & (sent < self.outage[1]))
        arrived = np.where(passes, sent, np.nan)
        return Seen(sizes, sent, sent, arrived, arrived, arrived, np.flatnonzero(passes), True, 0, int(sizes.sum()))


@pytest.mark.parametrize(("mtu", "budget_bytes"), [(1500, 10**6), (65_535, 10**6), (65_535, 10**5)])
def test_delays_are_measured_with_shorter_packets_where_long_ones_cost_too_much(mtu, budget_bytes):
    path = Passing(mtu)
    found = delays.measure(path, budget.Share("delays", budget_bytes, 5.0), mtu)
    assert found is not None
    assert path.spent_on("delays") <= budget_bytes


def mtu_of(path):
    """The figure, and whether a black hole was told."""
    packet, value, notes = mtu.measure(path, budget.Share("mtu", 10_000_000, math.inf))
    assert packet == value.value
    return (value.low, value.value, value.high), bool(notes)


@given(st.integers(576, 65_534))
@patient
def test_the_mtu_is_found_exactly(longest):
    assert mtu_of(Passing(longest)) == ((longest,) * 3, True)


@given(st.integers(576, 9_000), st.floats(0, 0.8), st.floats(0, 0.1))
@example(576, 0.0, 0.09375)
@patient
def test_an_outage_is_not_taken_for_an_mtu(longest, start, lasts):
    assert mtu_of(Passing(longest, (start, start + lasts))) == ((longest,) * 3, True)


@patient
@given(st.integers(10**6, 10**12), st.floats(5, 3600), st.integers(0, 6))
def test_the_shares_of_the_budget_are_within_it(size, seconds, count):
    shares = budget.plan(size, seconds, [f"cc{k}" for k in range(count)])
    assert sum(one.bytes for one in shares.values()) <= 0.95 * size
    assert sum(one.seconds for one in shares.values()) <= 0.95 * seconds


def test_what_tcp_does_not_need_the_other_tests_get():
    with_tcp, alone = budget.plan(10**8, 60.0, ["cubic"]), budget.plan(10**8, 60.0, [])
    assert sum(one.bytes for one in alone.values()) > 0.8 * 10**8
    assert all(one.bytes > with_tcp[test].bytes and one.seconds > with_tcp[test].seconds for test, one in alone.items())


def test_hosts_are_read_or_refused():
    assert resolved("127.0.0.1") == ("127.0.0.1", 5210)
    assert resolved("127.0.0.1:99") == ("127.0.0.1", 99)
    assert resolved("[::1]:99") == ("::1", 99)
    assert resolved("::1") == ("::1", 5210)
    for text in ("127.0.0.1:0", "127.0.0.1:x", "host.invalid", "", "[::1"):
        with pytest.raises(ScenarioError, match="HOST: expected"):
            resolved(text)


@contextlib.contextmanager
def serving(*options, at=()):
    """A server, as its first words say at which host; yields its process, its port and its token."""
    process = subprocess.Popen([*at, ELEPHAN, "path", "probe", "server", *options], stdout=subprocess.PIPE, text=True)
    try:
        first = process.stdout.readline()
        port, token = re.fullmatch(r"port (\d+), token (\S+)\n", first).groups()
        yield process, int(port), token
    finally:
        process.terminate()
        process.wait()
        process.stdout.close()


def probe(*options, token="", at=()):
    """A client."""
    environment = {**os.environ, "ELEPHAN_TOKEN": token}
    words = [*at, ELEPHAN, "path", "probe", "client", *map(str, options)]
    return subprocess.run(words, env=environment, capture_output=True, text=True, check=False)


@pytest.mark.realtime
def test_a_wrong_token_and_a_busy_server_give_one_line(tmp_path):
    with serving("--bind", "127.0.0.1", "--port", "0") as (_, port, token):
        host, folder = f"127.0.0.1:{port}", tmp_path / "path"
        wrong = probe(host, "--out", folder, token=token[:-1] + ("A" if token[-1] != "A" else "E"))
        assert (wrong.returncode, wrong.stderr.count("\n")) == (2, 1)
        assert "token: expected that of this server" in wrong.stderr
        none = probe(host, "--out", folder, token="secret")
        assert (none.returncode, none.stderr.count("\n")) == (2, 1)
        client = _core.ProbeClient("127.0.0.1", port, token, 10**7, 60.0)
        busy = probe(host, "--out", folder, token=token)
        assert (busy.returncode, busy.stderr.count("\n")) == (1, 1)
        assert "expected at most 1 clients at a time" in busy.stderr
        client.finish()
        assert not folder.exists()
    gone = probe(host, "--out", folder, token=token)
    assert (gone.returncode, gone.stderr.count("\n")) == (1, 1)


def known(tmp_path, path):
    """A scenario with this path."""
    lines = [f"{key} = {value}" for key, value in path.items()]
    file = tmp_path / "known.toml"
    file.write_text("\n".join(['name = "known"', 'duration = "1 s"', "[path]", *lines, "[[flow]]", 'cc = "reno"']))
    return load(file)


@pytest.mark.realtime
@pytest.mark.usefixtures("root")
def test_over_links_in_real_time_the_client_ends_well_writes_its_files_and_keeps_to_the_budget(tmp_path, deviation):
    path = {"rate": '"50 Mbit/s"', "rtt": '"40 ms"', "buffer": '"125000 B"'}
    folder = tmp_path / "path"
    with links(known(tmp_path, path)) as emulated, serving(at=emulated.far) as (_, _, token):
        options = ("--max-bytes", "30MB", "--max-seconds", 14, "--cc", "cubic")
        done = probe(FAR, "--out", folder, *options, token=token, at=emulated.near)
    assert done.returncode == 0, done.stderr
    assert read(folder).rate_bit_s.unit == "bit/s"
    assert load(folder / "path.toml").document["path"]["rate"]
    assert not Run.load(folder / "tcp-cubic").flows.is_empty()
    document = json.loads((folder / "probe.json").read_text())
    assert document["spent_bytes"] <= 30e6
    because = emulated.quality["invalid_because"]
    deviation("spent time beside the budget", document["spent_seconds"] / 14 - 1, below=0, because=because)


@pytest.mark.realtime
@pytest.mark.usefixtures("root")
def test_a_server_that_vanishes_ends_the_client_with_one_line(tmp_path):
    path = {"rate": '"50 Mbit/s"', "rtt": '"10 ms"'}
    with links(known(tmp_path, path)) as held, serving(at=held.far) as (process, _, token):
        words = [*held.near, ELEPHAN, "path", "probe", "client", FAR, "--out", tmp_path / "path", "--token", token]
        client = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        while "packet trains" not in client.stderr.readline():
            assert client.poll() is None
        process.kill()
        _, said = client.communicate(timeout=60)
    assert client.returncode == 1
    assert "Traceback" not in said
    assert said.splitlines()[-1].startswith("peer: expected the session to go on, found it closed")
    assert not (tmp_path / "path").exists()
