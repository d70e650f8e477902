"""Parts of the tables of a run that engines without the simulator's detail share."""

from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]


def no_transfers() -> dict[str, Array]:
    """The table of finished transfers, empty: every flow is unlimited."""
    return {
        "flow": np.zeros(0, np.uint32),
        "index": np.zeros(0, np.uint32),
        "start_s": np.zeros(0),
        "end_s": np.zeros(0),
        "bytes": np.zeros(0, np.uint64),
    }


def jain(goodputs: Array, counts: Array | None = None) -> float | None:
    """Jain's index of classes of `counts` equal flows each (default: one), as in crates/metrics; none without goodput."""
    counts = np.ones(len(goodputs)) if counts is None else counts
    flows, squares = float(counts.sum()), float((counts * goodputs**2).sum())
    if squares == 0.0:
        return None
    index = float((counts * goodputs).sum()) ** 2 / (flows * squares)
    return min(max(index, 1.0 / flows), 1.0)


def reasons(dropped: Array, *, is_full: bool) -> dict[str, Array]:
    """The columns of a queue's drops by their reason: all because it was full, or all by its discipline."""
    nothing = np.zeros(len(dropped), np.uint64)
    return {
        "dropped_full": dropped if is_full else nothing,
        "dropped_early": nothing if is_full else dropped,
        "dropped_policed": nothing,
        "dropped_down": nothing,
    }
