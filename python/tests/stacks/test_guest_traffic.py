"""The traffic of a scenario on a guest kernel, in virtual time: its times and sizes are the simulator's."""

import pytest

from elephan.api.scenario import dumbbell, flow
from elephan.engines.run import run

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("guest")]

# The resolution of a sleep, and what a kernel adds to a packet's way.
EXACT_S = 5e-6


def carry_out(engine="kernel", **keys):
    settings = {"rate": "50 Mbit/s", "rtt": "20 ms", "buffer": "100% bdp", "tcp": {"rto_min": "200 ms"}, "flows": []}
    made = run(dumbbell(**{**settings, "engine": engine, **keys}))
    assert engine == "sim" or made.provenance["quality"]["valid"]
    return made


def both(**keys):
    return carry_out(**keys), carry_out("sim", **keys)


def crowds():
    users = {"users": 20, "start": {"uniform": ["0 s", "1 s"]}, "think": {"exponential": "500 ms"}}
    users |= {"objects": {"uniform": [1, 4]}, "size": {"exponential": "10 kB"}, "between": {"exponential": "5 ms"}}
    arrivals = {"cc": "reno", "per_second": 30, "size": {"exponential": "20 kB"}, "stop": "5 s"}
    return {"web": [users], "arrivals": [arrivals], "cbr": [{"rate": "1 Mbit/s"}], "duration": "6 s"}


def test_datagrams_are_sent_and_cross_the_links_as_in_a_simulation():
    streams = [{"rate": "20 Mbit/s"}, {"rate": "5 Mbit/s", "burst": 16, "reverse": True}]
    found, expected = both(cbr=streams, duration="3 s", measure={"from": "1 s"})
    assert found.streams["sent"].to_list() == expected.streams["sent"].to_list()
    for stream, other in zip(found.summary.streams, expected.summary.streams, strict=True):
        assert stream.lost == 0
        assert abs(stream.delay_mean_s - other.delay_mean_s) < EXACT_S


def test_a_crowd_makes_the_requests_of_a_simulation():
    found, expected = both(**crowds())
    transfers = [each.transfers.filter(each.transfers["flow"] == 1).sort("index") for each in (found, expected)]
    assert transfers[0]["bytes"].to_list() == transfers[1]["bytes"].to_list()
    assert (transfers[0]["start_s"] - transfers[1]["start_s"]).abs().max() < EXACT_S
    for crowd, other in zip(found.summary.crowds, expected.summary.crowds, strict=True):
        assert crowd.goodput_bit_s == pytest.approx(other.goodput_bit_s, rel=0.1)
        assert crowd.transfers.p50_s == pytest.approx(other.transfers.p50_s, rel=0.1)
        assert crowd.failed == 0
    assert found.summary.crowds[0].pages.count == pytest.approx(expected.summary.crowds[0].pages.count, rel=0.1)


def test_two_runs_are_the_same_to_the_bit():
    flows = [flow("cubic", size="200 kB", transfers="repeat"), flow("linux:bbr", start="1 s", stop="4 s")]
    runs = [carry_out(flows=flows, **crowds()) for _ in range(2)]
    for table in ("flows", "transfers", "crowds", "streams", "queues"):
        assert getattr(runs[0], table).equals(getattr(runs[1], table)), table
    assert runs[0].summary == runs[1].summary


def test_the_kernel_gives_a_connection_up_and_the_crowd_goes_on():
    """A SYN is sent for the last time 67 s after the first (63 s before Linux 6.5), and given up after twice that time."""
    arrivals = {"cc": "reno", "per_second": 1, "size": {"exponential": "10 kB"}}
    outage = [{"at": "5 s", "link": "bottleneck", "up": False}, {"at": "150 s", "link": "bottleneck", "up": True}]
    made = carry_out(arrivals=[arrivals], event=outage, duration="200 s", measure={"from": "0 s"})
    crowd = made.summary.crowds[0]
    assert 30 < crowd.failed < 90
    assert crowd.transfers.count > 100
    assert made.crowds["open"][-1] == crowd.opened - crowd.failed - crowd.transfers.count


def test_a_window_is_the_connections_and_so_is_pacing():
    windows = [{"initial_window": 2}, {"initial_window": 40}, {"initial_window": 40, "pacing": True}]
    flows = [flow("reno", size="50 kB", transfers=1, tcp={"rto_min": "200 ms", **stack}) for stack in windows]
    queues = []
    for alone in flows:
        found, expected = both(flows=[alone], rtt="100 ms", duration="2 s", measure={"from": "0 s"})
        # Linux paces the first window as one of 10 segments, the simulator by its size.
        tolerance = 0.1 if alone is flows[2] else 0.02
        assert found.transfers["end_s"][0] == pytest.approx(expected.transfers["end_s"][0], abs=tolerance)
        queues.append(found.summary.links[0].queue_max_packets)
    assert queues[0] < 20 < queues[1]
    assert queues[2] < 15
    # Each in one run: the listening host has an address for each window.
    together = carry_out(flows=flows, rtt="100 ms", duration="2 s").transfers.sort("flow")["end_s"]
    assert together[0] > together[1] + 0.3


def received(samples):
    return samples["receive_rate_bit_s"].sum() * 0.1 / 8


def test_what_reaches_the_listening_host_is_counted():
    """Without losses it is what is delivered; with losses it is less than was sent."""
    clean = carry_out(flows=[flow("cubic")], buffer="10000 packets", **(crowds() | {"duration": "4 s"}))
    assert clean.summary.loss_rate == 0
    # What is delivered is sampled a microsecond later.
    assert received(clean.flows) == pytest.approx(clean.flows["delivered_bytes"].max(), abs=1500)
    for crowd in (1, 2):
        samples = clean.crowds.filter(clean.crowds["flow"] == crowd)
        assert received(samples) == pytest.approx(samples["delivered_bytes"].max(), abs=1500)

    lossy = carry_out(flows=[flow("cubic")], duration="5 s", path={"loss": {"name": "random", "probability": 0.01}})
    delivered, sent = lossy.flows["delivered_bytes"].max(), lossy.flows["sent_bytes"].max()
    assert delivered - 1500 <= received(lossy.flows) < sent - 5000
