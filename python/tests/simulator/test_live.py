"""A watched run gives the same results as an unwatched one."""

import json
import tomllib

import numpy as np
import pytest

import elephan
from elephan import _core

SCENARIO = elephan.dumbbell(
    rate="10 Mbit/s",
    rtt="20 ms",
    buffer="50% bdp",
    flows=[elephan.flow("htcp"), elephan.flow("scalable", start="1 s")],
    duration="3 s",
)


def test_samples_that_are_handed_over_are_those_of_the_result() -> None:
    times: list[float] = []
    pieces: list[tuple[dict[str, np.ndarray], dict[str, np.ndarray]]] = []

    def take(time_s: float, flows: dict[str, np.ndarray], queues: dict[str, np.ndarray]) -> bool:
        times.append(time_s)
        pieces.append((flows, queues))
        return True

    live = _core.run_live(SCENARIO, 0.25, take)
    assert times == [k * 0.25 for k in range(13)]
    for which, name in enumerate(("flows", "queues")):
        for column in pieces[0][which]:
            joined = np.concatenate([piece[which][column] for piece in pieces])
            np.testing.assert_array_equal(joined, live[name][column])
    still = elephan.run(SCENARIO)
    assert elephan.Summary.from_dict(json.loads(live["summary"])) == still.summary
    np.testing.assert_array_equal(live["flows"]["cwnd_segments"], still.flows["cwnd_segments"].to_numpy())


def test_a_watched_run_can_be_cancelled_and_its_watcher_may_fail() -> None:
    with pytest.raises(KeyboardInterrupt):
        _core.run_live(SCENARIO, 0.25, lambda time_s, *_: time_s < 1)

    def fails(*_: object) -> bool:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        _core.run_live(SCENARIO, 0.25, fails)


def test_a_document_becomes_a_scenario_file() -> None:
    assert tomllib.loads(SCENARIO.toml) == SCENARIO.document
