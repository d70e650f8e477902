"""Algorithms of ours beside Linux's own modules of the same names, on the same simulated paths."""

import pytest

import elephan

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("tree")]

LOSSY = {"loss": {"name": "random", "probability": 1e-4}}
MARKING = {"queue": {"name": "threshold", "packets": 40}}


def goodput_and_window(cc, buffer, path):
    scenario = elephan.dumbbell(
        name="peers",
        rate="50 Mbit/s",
        rtt="80 ms",
        buffer=buffer,
        path=path,
        flows=[elephan.flow(cc)],
        tcp={"profile": "linux-6"},
        duration="60 s",
        measure={"from": "20 s"},
    )
    # One run of random losses is one draw of many: the mean of five.
    flows = [elephan.run(scenario.with_settings({"seed": str(seed)})).summary.flows[0] for seed in range(1, 6)]
    return tuple(sum(getattr(flow, key) for flow in flows) / 5 for key in ("goodput_bit_s", "cwnd_mean_segments"))


@pytest.mark.parametrize(
    ("name", "buffer", "path", "apart"),
    [
        ("illinois", "20% bdp", {}, 0.02),
        ("illinois", "100% bdp", {}, 0.02),
        ("illinois", "100% bdp", LOSSY, 0.02),
        ("veno", "20% bdp", {}, 0.02),
        ("veno", "100% bdp", {}, 0.02),
        ("veno", "100% bdp", LOSSY, 0.02),
        ("yeah", "100% bdp", {}, 0.02),
        ("yeah", "100% bdp", LOSSY, 0.03),
        # With a long queue Linux raises the window to the product at once, and the burst is lost: 3.6 % over five seeds.
        ("westwood", "100% bdp", LOSSY, 0.04),
        ("dctcp", "100% bdp", MARKING, 0.03),
    ],
)
def test_the_mean_window_is_that_of_linuxs_module(name, buffer, path, apart):
    ours, theirs = (goodput_and_window(cc, buffer, path) for cc in (name, f"linux:{name}"))
    assert ours == pytest.approx(theirs, rel=apart)
