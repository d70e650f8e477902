"""The algorithms of `kernel/` in a guest kernel. Their operations are compared with the host's in crates/abi."""

import pytest

import elephan
from elephan import kernel
from elephan.api.scenario import dumbbell, flow
from elephan.engines.run import run

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("guest")]

PUBLISHED = {entry.name: entry.parameters[0] for entry in elephan.algorithms() if entry.name in kernel.algorithms()}


def samples(*controls):
    flows = [flow(control) for control in controls]
    keys = {"rate": "20 Mbit/s", "rtt": "40 ms", "buffer": "50% bdp", "duration": "12 s", "engine": "kernel"}
    return run(dumbbell(flows=flows, **keys)).flows.drop("label")


def test_windows_of_standard_tcp_are_those_of_linuxs_own_module():
    assert samples("kernel:reno").equals(samples("linux:reno"))


@pytest.mark.parametrize("name", PUBLISHED)
def test_an_algorithm_with_its_published_parameters_is_the_one_that_the_guest_registers(name):
    first = PUBLISHED[name]
    assert samples(f"kernel:{name}").equals(samples({"name": f"kernel:{name}", first.name: first.default}))


def test_each_flow_of_a_run_has_its_own_parameters():
    slow, fast = ({"name": "reno", "a": a} for a in (0.25, 4.0))
    both = samples(slow, fast)
    windows = [both.filter(both["flow"] == which)["cwnd_segments"].mean() for which in (0, 1)]
    assert 2 * windows[0] < windows[1]
