"""The algorithms of `kernel/` in a guest kernel. Their operations are compared with the host's in crates/kernel."""

import json

import numpy as np
import pytest

from elephan import _core, kernel
from elephan.api.scenario import dumbbell, flow
from elephan.engines.kernel import INIT, LINKS
from elephan.kernel import KernelError, image

PATH = dumbbell(rate="20 Mbit/s", rtt="40 ms", buffer="50% bdp", duration="12 s", flows=[flow("reno")])
REGISTERED = {name: entry.registered for name, entry in kernel.algorithms().items()}


@pytest.fixture(scope="module")
def path():
    """Runs a flow with the algorithm of this name in the guest, and returns its samples by column."""
    try:
        found = image.find()
    except KernelError as error:
        pytest.skip(str(error))
    if not (INIT.is_file() and LINKS.is_file()):
        pytest.skip(f"{INIT.parent}: expected what runs in a guest, found nothing; `make guest` builds it")

    def run(name, *loads):
        result = _core.run_guest(PATH.to_json(), [name], list(loads), image=found.path, init=INIT, links=LINKS)
        assert json.loads(result["quality"])["valid"]
        return result["flows"]

    return run


def same(one, other):
    return all(np.array_equal(one[column], other[column], equal_nan=True) for column in one)


def test_windows_of_standard_tcp_are_those_of_the_kernels_own_module(path):
    assert same(path("reno"), path("el_reno"))


@pytest.mark.parametrize("name", REGISTERED)
def test_an_algorithm_with_its_published_parameters_is_the_one_that_the_guest_registers(path, name):
    load = (REGISTERED[name].removeprefix("el_"), "el_again", _core.kernel_values(name, "{}"))
    assert same(path(REGISTERED[name]), path("el_again", load))


def test_each_flow_has_its_parameters(path):
    fast = ("reno", "el_fast_reno", _core.kernel_values("reno", '{"a": 4.0}'))
    slow = ("reno", "el_slow_reno", _core.kernel_values("reno", '{"a": 0.25}'))
    events = [path(load[1], fast, slow)["congestion_events"][-1] for load in (slow, fast)]
    assert events[0] < events[1]
