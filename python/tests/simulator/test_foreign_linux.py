"""Linux's congestion control modules: compiled from the source of Debian's kernel, and driven through the C interface."""

import ctypes
import math
import shutil
from concurrent.futures import ThreadPoolExecutor
from ctypes import POINTER, c_char_p, c_double, c_uint32, c_uint64, c_void_p
from functools import cache

import numpy as np
import pytest

from elephan.api.scenario import dumbbell, flow
from elephan.engines.run import run
from elephan.foreign import compiled, modules

NAMES = (
    *("bbr", "bic", "cdg", "cubic", "dctcp", "highspeed", "htcp", "hybla", "illinois", "lp", "nv", "scalable", "vegas"),
    *("veno", "westwood", "yeah"),
)
OPEN, DISORDER, CWR, RECOVERY, LOSS = range(5)
BY_LOSS, BY_MARK, BY_TIMEOUT = range(3)
START, RESTART, END_CWR, TIMEOUT, CE, NO_CE = range(6)
GOVERNS_RECOVERY, NEEDS_RATE, NEEDS_ECN = 1, 2, 4
MSS = 1448

pytestmark = pytest.mark.slow


Window, Ack = map(np.ctypeslib.as_ctypes_type, (compiled.WINDOW, compiled.ACK))
Rate = dict(Ack._fields_)["rate"]


class Parameter(ctypes.Structure):
    _fields_ = (("name", c_char_p), ("meaning", c_char_p), ("value", c_double), ("low", c_double), ("high", c_double))


def _function(result, *arguments):
    return ctypes.CFUNCTYPE(result, *arguments)


_AT = (c_void_p, POINTER(Window), POINTER(Ack))


class Table(ctypes.Structure):
    _fields_ = (
        *((name, c_uint32) for name in ("abi", "size", "flags", "reserved")),
        *((name, c_char_p) for name in ("name", "title", "source")),
        ("parameters", POINTER(Parameter)),
        ("create", _function(c_void_p, POINTER(c_double), c_uint64)),
        ("clone", _function(c_void_p, c_void_p)),
        ("destroy", _function(None, c_void_p)),
        ("on_start", _function(None, *_AT)),
        ("on_ack", _function(None, *_AT)),
        ("on_congestion", _function(None, *_AT, c_uint32)),
        ("on_state", _function(None, *_AT)),
        ("on_event", _function(None, *_AT, c_uint32)),
        ("on_undo", _function(None, c_void_p, POINTER(Window), POINTER(Window))),
    )


@cache
def table_of(file):
    return Table.in_dll(ctypes.CDLL(str(modules.module(str(file)))), "elephan_cc")


def _parameters(table):
    rows = {}
    for n in range(64):
        if not table.parameters or not table.parameters[n].name:
            break
        rows[table.parameters[n].name.decode()] = table.parameters[n]
    return rows


class Sender:
    """A sender over a path that an ACK clock stands for: each segment is acknowledged by itself, after the round-trip time."""

    def __init__(self, table, *, rtt_ms=100.0, seed=1, **values):
        self.table = table
        rows = _parameters(table)
        assert values.keys() <= rows.keys()
        chosen = [float(values.get(name, row.value)) for name, row in rows.items()]
        self.state = table.create((c_double * max(len(chosen), 1))(*chosen), seed)
        if not self.state:
            raise ValueError("refused")
        self.window = Window(10, math.inf, 0, 0)
        rtt_ns = round(rtt_ms * 1e6)
        self.ack = Ack(now_ns=10**9, rtt_ns=rtt_ns, min_rtt_ns=rtt_ns, srtt_ns=rtt_ns, mss=MSS, is_window_limited=1)
        self.rtt_ns = rtt_ns
        # The pacing rate after each ACK.
        self.rates = []
        self.call("on_start")

    def copy(self):
        other = Sender.__new__(Sender)
        other.table, other.rtt_ns, other.rates = self.table, self.rtt_ns, []
        other.state = self.table.clone(self.state)
        other.window = Window.from_buffer_copy(self.window)
        other.ack = Ack.from_buffer_copy(self.ack)
        return other

    def close(self):
        self.table.destroy(self.state)

    def call(self, name, *more):
        self.window.requests = 0
        getattr(self.table, name)(self.state, ctypes.byref(self.window), ctypes.byref(self.ack), *more)
        assert 1 <= self.window.cwnd <= 2**31
        assert self.window.cwnd == int(self.window.cwnd)
        assert math.isfinite(self.window.pacing_rate)
        assert self.window.pacing_rate >= 0

    def round(self, *, rtt_ms=None, marked=0.0):
        """A window of segments is acknowledged; a share of them echoes marks."""
        ack = self.ack
        rtt_ns = self.rtt_ns if rtt_ms is None else round(rtt_ms * 1e6)
        count = int(self.window.cwnd)
        before, before_ce = ack.delivered, ack.delivered_ce
        ack.snd_nxt = ack.snd_una + count * MSS
        ack.round += 1
        ack.outstanding_max = count
        ack.min_rtt_ns = min(ack.min_rtt_ns, rtt_ns)
        for n in range(count):
            ack.now_ns += rtt_ns // count
            ack.sent_ns = ack.now_ns
            ack.rtt_ns = rtt_ns
            ack.srtt_ns += (rtt_ns - ack.srtt_ns) // 8
            ack.snd_una += MSS
            ack.snd_nxt += MSS
            ack.delivered += 1
            ack.is_ece = int((n + 1) * marked) > int(n * marked)
            ack.delivered_ce += ack.is_ece
            ack.acked = ack.acked_cumulative = 1
            ack.growth = 1
            ack.prior_in_flight = count
            ack.in_flight = count - 1
            prior = max(before + n + 1 - count, 0)
            ack.rate = Rate(rtt_ns, prior, before_ce, ack.delivered - prior, ack.delivered_ce - before_ce)
            self.call("on_ack")
            self.rates.append(self.window.pacing_rate)
            if self.window.requests:
                self.reduce(BY_MARK, CWR)
                break
        ack.is_ece = 0

    def rounds(self, count, **options):
        for _ in range(count):
            self.round(**options)

    def rounds_on(self, product, count):
        """Rounds on a path that holds `product` segments; what exceeds them waits in a queue."""
        for _ in range(count):
            self.round(rtt_ms=self.rtt_ns / 1e6 * max(self.window.cwnd / product, 1))

    def state_is(self, state):
        self.ack.state = state
        self.call("on_state")

    def reduce(self, cause=BY_LOSS, state=RECOVERY):
        """A congestion event, with the recovery that follows: the factor by which the window is reduced."""
        before = self.window.cwnd
        self.call("on_congestion", cause)
        self.state_is(state)
        self.window.cwnd = min(self.window.cwnd, self.window.ssthresh)
        self.call("on_event", END_CWR)
        self.state_is(OPEN)
        return self.window.ssthresh / before

    def at(self, cwnd):
        """Congestion avoidance with a window."""
        self.window.cwnd = self.window.ssthresh = cwnd
        return self


@pytest.fixture
def sender(tree):
    """Makes senders by the name of a module, and destroys them."""
    made = []

    def make(name, **options):
        made.append(Sender(table_of(tree.modules()[name]), **options))
        return made[-1]

    yield make
    for one in made:
        one.close()


def test_each_of_the_sixteen_compiles_without_a_warning(tree):
    assert set(NAMES) <= tree.modules().keys()
    for name in NAMES:
        modules._compiled(tree.modules()[name], flags=("-Wall", "-Werror"))


@pytest.mark.parametrize("name", NAMES)
def test_a_table_says_what_the_module_says(tree, name):
    table = table_of(tree.modules()[name])
    assert table.abi == 1
    assert table.size == ctypes.sizeof(Table)
    assert table.name.decode() == name
    assert table.title
    assert table.flags == {"bbr": GOVERNS_RECOVERY | NEEDS_RATE, "nv": NEEDS_RATE, "dctcp": NEEDS_ECN}.get(name, 0)
    for row in _parameters(table).values():
        assert row.meaning
        assert row.low <= row.value <= row.high


def test_parameters_have_the_meaning_and_range_of_the_module(tree):
    cubic = _parameters(table_of(tree.modules()["cubic"]))
    assert cubic["beta"].value == 717
    assert cubic["bic_scale"].meaning.decode().startswith("scale (scaled by 1024) value")
    dctcp = _parameters(table_of(tree.modules()["dctcp"]))["dctcp_shift_g"]
    assert (dctcp.value, dctcp.low, dctcp.high) == (4, 0, 10)
    cdg = _parameters(table_of(tree.modules()["cdg"]))
    assert (cdg["use_shadow"].value, cdg["use_shadow"].low, cdg["use_shadow"].high) == (1, 0, 1)
    # Those of Vegas, whose functions YeAH calls, are not YeAH's.
    assert not _parameters(table_of(tree.modules()["yeah"]))


@pytest.mark.parametrize("name", [name for name in NAMES if name not in ("bbr", "hybla", "lp")])
def test_slow_start_doubles_the_window(sender, name):
    # Hybrid slow start would end it: these ACKs are a train as long as the round-trip time.
    without = {"cubic": {"hystart": 0}, "cdg": {"hystart_detect": 0}}
    one = sender(name, rtt_ms=40, **without.get(name, {}))
    one.round()
    assert one.window.cwnd == 20
    one.round()
    assert one.window.cwnd == 40


def test_cubic_leaves_slow_start_by_hystart(sender):
    one = sender("cubic", rtt_ms=40)
    one.rounds(4)
    assert one.window.ssthresh < 40


def test_hybla_grows_faster_on_a_longer_path(sender):
    windows = []
    for rtt_ms in (25, 50, 100):
        one = sender("hybla", rtt_ms=rtt_ms).at(40)
        one.rounds(10)
        windows.append(one.window.cwnd - 40)
    # rho^2 segments a round trip, with rho the round-trip time over 25 ms.
    assert windows[0] == pytest.approx(10, abs=4)
    assert windows[1] == pytest.approx(40, rel=0.15)
    assert windows[2] == pytest.approx(160, rel=0.15)


FACTORS = {
    **dict.fromkeys(("htcp", "hybla", "lp", "vegas", "cdg"), 0.5),
    **{"scalable": 0.875, "cubic": 717 / 1024, "bic": 819 / 1024, "nv": 819 / 1024, "veno": 0.8, "yeah": 0.875},
    **{"highspeed": 1 - 93 / 256, "illinois": 0.875},
}


@pytest.mark.parametrize("name", FACTORS)
def test_a_loss_reduces_by_the_factor_of_the_source(sender, name):
    one = sender(name).at(400)
    one.rounds(3)
    assert one.reduce() == pytest.approx(FACTORS[name], abs=0.01)


def test_illinois_halves_the_window_after_long_delays(sender):
    one = sender("illinois").at(400)
    one.rounds(3)
    one.rounds(8, rtt_ms=200)
    assert one.reduce() == pytest.approx(0.5, abs=0.01)


def test_westwood_sets_the_threshold_to_the_measured_product(sender):
    one = sender("westwood", rtt_ms=100).at(400)
    one.rounds(20)
    # The window is the product of rate and delay here, for no queue delays.
    product = one.window.cwnd
    one.rounds(20, rtt_ms=110)
    before = one.window.cwnd
    one.reduce()
    rate = before / 0.110
    assert one.window.cwnd == pytest.approx(rate * 0.1, rel=0.08)
    assert one.window.cwnd > 0.8 * product


def test_vegas_keeps_a_few_segments_in_the_queue(sender):
    one = sender("vegas").at(100)
    # The path holds 100 segments; the delay grows with what exceeds them.
    one.rounds_on(100, 60)
    assert 101 <= one.window.cwnd <= 105


def test_dctcp_reduces_by_half_of_the_marked_share(sender):
    one = sender("dctcp", dctcp_alpha_on_init=0).at(200)
    for _ in range(80):
        one.round(marked=0.25)
        one.window.cwnd = one.window.ssthresh = 200
    assert one.reduce(BY_MARK, CWR) == pytest.approx(1 - 0.25 / 2, abs=0.02)
    # A loss halves the window, whatever the marks.
    assert one.at(200).reduce() == 0.5


def test_cdg_backs_off_for_a_growing_delay(sender):
    one = sender("cdg", hystart_detect=0, use_ineff=0).at(100)
    reduced = 0
    for n in range(60):
        before = one.window.cwnd
        one.round(rtt_ms=100 + 5 * n)
        reduced += one.window.cwnd < before
    assert reduced >= 3


@pytest.mark.parametrize("name", NAMES)
def test_copies_of_a_connection_are_independent(sender, name):
    one = sender(name)
    one.at(60).rounds_on(80, 8)
    first, second = one.copy(), one.copy()
    one.rounds_on(50, 5)
    one.reduce()
    windows = []
    for other in (first, second):
        other.rounds_on(60, 3)
        other.reduce()
        other.rounds_on(80, 3)
        windows.append(other.window.cwnd)
        other.close()
    assert windows[0] == windows[1]


def test_connections_with_other_parameters_share_nothing(sender):
    # beta_scale and cube_factor, which the module computes when it is loaded, follow.
    plain, gentle, plain_again = sender("cubic"), sender("cubic", beta=922), sender("cubic")
    for one, factor in ((plain, 717), (gentle, 922), (plain_again, 717)):
        one.at(500).rounds(2)
        assert one.reduce() == pytest.approx(factor / 1024, abs=0.003)
    copy = gentle.copy()
    gentle.close()
    gentle.state = copy.state
    assert gentle.at(500).reduce() == pytest.approx(922 / 1024, abs=0.003)


def test_connections_with_other_parameters_run_on_threads(tree):
    table = table_of(tree.modules()["cubic"])

    def factor(beta):
        one = Sender(table, beta=beta)
        one.at(1000).rounds(2)
        found = one.reduce()
        one.close()
        return found

    betas = [600 + n for n in range(40)] * 2
    with ThreadPoolExecutor(8) as pool:
        for beta, found in zip(betas, pool.map(factor, betas), strict=True):
            assert found == pytest.approx(beta / 1024, abs=0.001)


def test_a_module_refuses_values(sender):
    with pytest.raises(ValueError, match="refused"):
        sender("cdg", window=7)
    with pytest.raises(ValueError, match="refused"):
        sender("cubic", beta=717.5)
    assert sender("cdg", window=16)


def test_a_timeout_tells_the_module_of_the_loss(sender):
    one = sender("westwood").at(100)
    one.rounds(20)
    one.call("on_congestion", BY_TIMEOUT)
    # CA_EVENT_LOSS sets the threshold to rate times delay, instead of half the window.
    assert one.window.ssthresh == pytest.approx(one.window.cwnd, rel=0.15)


@pytest.mark.parametrize("name", [name for name in NAMES if name not in ("bbr", "illinois")])
def test_an_undo_restores_the_window(sender, name):
    one = sender(name).at(300)
    one.rounds(3)
    before = Window.from_buffer_copy(one.window)
    one.reduce()
    one.window.requests = 0
    one.table.on_undo(one.state, ctypes.byref(one.window), ctypes.byref(before))
    assert one.window.cwnd == before.cwnd
    assert one.window.ssthresh >= before.cwnd * 0.75 - 1


def test_bbr_paces_at_a_multiple_of_the_measured_rate(sender):
    one = sender("bbr", rtt_ms=50)
    # A path of 200 segments in a round-trip time of 50 ms, whose queue holds the rest.
    rate = 200 * MSS / 0.05
    one.rounds_on(200, 40)
    # Startup, and then a drain that does not end: this sender fills its window whatever the pace. One percent is left free.
    assert max(one.rates) == pytest.approx(2.885 * 0.99 * rate, rel=0.01)
    assert one.rates[-1] == pytest.approx(0.99 * rate / 2.885, rel=0.01)


def test_the_newest_import_is_used(tmp_path, monkeypatch, tree):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    for version in ("1", "2"):
        folder = tmp_path / version / "net" / "ipv4"
        folder.mkdir(parents=True)
        for file in ("tcp_scalable.c", "tcp_vegas.c", "tcp_vegas.h"):
            shutil.copy(tree.folder / file, folder)
        (folder / "tcp_scalable.c").open("a").write(f"/* {version} */\n")
        (tmp_path / version / "Makefile").write_text(f"VERSION = 9\nPATCHLEVEL = {version}\nSUBLEVEL = 0\n")
        assert modules.import_tree(tmp_path / version).version == f"9.{version}.0"
    assert [one.version for one in modules.trees()] == ["9.2.0", "9.1.0"]
    modules.import_tree(tmp_path / "1")
    assert [one.version for one in modules.trees()] == ["9.1.0", "9.2.0"]
    assert set(modules.current().modules()) == {"scalable", "vegas"}
    assert modules.module("cubic") is None
    assert modules.module("vegas") == modules.module("vegas")


# In the simulator.

RATE_BIT_S, RTT_S = 50e6, 0.05
# Segments of 1500 bytes that the path holds without a queue.
PRODUCT = RATE_BIT_S * RTT_S / 12000
BUFFERS = ("20% bdp", "100% bdp")


def simulated(tree, *names, buffer="100% bdp", duration="20 s", **keys):
    """A run on a path of 50 Mbit/s and 50 ms with Linux's TCP around the modules; other names are algorithms of ours."""
    files = tree.modules()
    flows = [flow(f"linux:{files[name]}" if name in files else name) for name in names]
    keys = {"tcp": {"profile": "linux-6"}, "trace": {"interval": "10 ms"}} | keys
    scenario = dumbbell(rate="50 Mbit/s", rtt="50 ms", buffer=buffer, flows=flows, duration=duration, **keys)
    return run(scenario)


def after(done, time_s, flow=0):
    """The samples of a flow after a time."""
    samples = done.flows
    return samples.filter((samples["time_s"] > time_s) & (samples["flow"] == flow))


def reductions(done, flow=0):
    """What share of its window each congestion event but the first left as threshold."""
    samples = after(done, 0, flow)
    cwnd, ssthresh, events = (
        samples[name].to_numpy() for name in ("cwnd_segments", "ssthresh_segments", "congestion_events")
    )
    at = np.flatnonzero(np.diff(events)) + 1
    return [ssthresh[n] / cwnd[n - 1] for n in at[1:]]


@pytest.mark.parametrize("buffer", BUFFERS)
@pytest.mark.parametrize("name", NAMES)
def test_each_of_the_sixteen_uses_the_path(tree, name, buffer):
    done = simulated(tree, name, buffer=buffer)
    (summary,) = done.summary.flows
    assert summary.label == f"linux:tcp_{name}.c"
    # CDG gives way to queues that it makes itself; Westwood+ and NV underestimate the path.
    least = {"lp": 0.6, "cdg": 0.6, "westwood": 0.45, "nv": 0.7}.get(name, 0.78)
    assert least * RATE_BIT_S < summary.goodput_bit_s < 0.97 * RATE_BIT_S
    assert summary.timeouts == 0


def test_cdg_is_told_the_round_trip_time_of_the_handshake(tree):
    # The first window's queue is no growth of the delay then. This is the threshold at which the kernel leaves slow start.
    thresholds = simulated(tree, "cdg", duration="1 s", seed=2).flows["ssthresh_segments"].to_numpy()
    assert thresholds[np.isfinite(thresholds)][0] == 266


def test_runs_are_repeatable(tree):
    for name in ("bbr", "cdg"):
        first, again = (simulated(tree, name, duration="5 s") for _ in range(2))
        assert first.flows.equals(again.flows)


@pytest.mark.parametrize(
    ("name", "factor"),
    [("scalable", 0.875), ("cubic", 0.7), ("bic", 0.8), ("hybla", 0.5), ("dctcp", 0.5), ("yeah", 0.875)],
)
def test_losses_reduce_the_window_by_the_factor_of_the_source(tree, name, factor):
    found = reductions(simulated(tree, name, duration="40 s"))
    assert len(found) >= 3
    assert np.median(found) == pytest.approx(factor, abs=0.01)


def test_htcp_reduces_by_the_ratio_of_delays(tree):
    found = reductions(simulated(tree, "htcp", buffer="20% bdp", duration="40 s"))
    # The smallest over the largest round-trip time is 1 / 1.2, and 0.8 the upper bound.
    assert np.median(found) == pytest.approx(0.8, abs=0.01)


@pytest.mark.parametrize("buffer", BUFFERS)
def test_vegas_stays_near_the_product(tree, buffer):
    windows = after(simulated(tree, "vegas", buffer=buffer, duration="30 s"), 25)["cwnd_segments"]
    assert windows.min() > PRODUCT + 1
    assert windows.max() < PRODUCT + 10


@pytest.mark.parametrize("buffer", BUFFERS)
def test_nv_keeps_its_queue_short(tree, buffer):
    windows = after(simulated(tree, "nv", buffer=buffer, duration="30 s"), 20)["cwnd_segments"]
    # A pad of ten segments, and more because its round-trip times are smoothed.
    assert windows.max() < PRODUCT + 40


def test_westwood_sets_the_threshold_to_the_product(tree):
    found = after(simulated(tree, "westwood", duration="90 s"), 45)["ssthresh_segments"]
    assert found.max() == pytest.approx(PRODUCT, rel=0.1)


def test_dctcp_keeps_the_queue_at_the_marking_threshold(tree):
    queue = {"name": "threshold", "packets": 30}
    done = simulated(tree, "dctcp", path={"queue": queue}, duration="20 s")
    assert done.summary.flows[0].retransmitted_bytes == 0
    windows = after(done, 10)["cwnd_segments"]
    assert 0.95 * PRODUCT < windows.mean() < PRODUCT + 30
    assert done.summary.flows[0].goodput_bit_s > 0.8 * RATE_BIT_S


def test_lp_is_reno_for_the_timestamps_of_linux(tree):
    # It compares differences of delays with the delays, which have the random offset of the receiver's timestamps.
    done = simulated(tree, "lp", duration="40 s")
    assert np.median(reductions(done)) == pytest.approx(0.5, abs=0.01)
    assert done.summary.flows[0].goodput_bit_s > 0.9 * RATE_BIT_S


@pytest.mark.parametrize("buffer", BUFFERS)
def test_bbr_cycles_through_eight_phases(tree, buffer):
    done = simulated(tree, "bbr", buffer=buffer, duration="20 s")
    # Between the probes for the round-trip time, which begin every ten seconds.
    samples = after(done, 5)
    samples = samples.filter(samples["time_s"] < 9.8)
    # Twice the product, and what segmentation offload and early ACKs add.
    assert 2 * PRODUCT <= samples["cwnd_segments"].max() < 2.2 * PRODUCT
    assert done.summary.flows[0].goodput_bit_s > 0.9 * RATE_BIT_S
    # A quarter more for one round trip in eight, and a quarter less for the next: what is in flight repeats itself.
    pipe = samples["pipe_bytes"].to_numpy() / 1500
    pipe = pipe - pipe.mean()
    alike = [np.corrcoef(pipe[:-lag], pipe[lag:])[0, 1] for lag in range(1, 71)]
    lag_s = (30 + np.argmax(alike[29:])) / 100
    assert max(alike[29:]) > 0.5
    assert lag_s == pytest.approx(8 * RTT_S, rel=0.15)
    # Every ten seconds four segments in flight, for 200 ms.
    assert after(done, 9.8)["pipe_bytes"].min() <= 5 * 1500


def test_flows_of_one_run_may_have_other_parameters(tree):
    name = f"linux:{tree.modules()['cubic']}"
    flows = [flow(name), flow({"name": name, "beta": 922})]
    done = run(dumbbell(rate="50 Mbit/s", rtt="50 ms", flows=flows, duration="40 s", tcp={"profile": "linux-6"}))
    for flow_index, beta in enumerate((717, 922)):
        assert np.median(reductions(done, flow_index)) == pytest.approx(beta / 1024, abs=0.01)


def test_refused_parameters_are_an_error_of_the_run(tree):
    name = f"linux:{tree.modules()['cdg']}"
    flows = [flow({"name": name, "window": 7})]
    with pytest.raises(Exception, match="refuses the values"):
        run(dumbbell(rate="50 Mbit/s", rtt="50 ms", flows=flows, duration="1 s"))
