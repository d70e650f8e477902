"""The fluid equations over time, as arrays: `elephan-model` integrates them."""

from collections.abc import Callable
from dataclasses import astuple, dataclass
from typing import Any

import numpy as np

from elephan import _core


@dataclass(frozen=True)
class FlowClass:
    """Flows that are identical in the fluid model. `cc` is JSON; `window` and `ssthresh` are in segments."""

    cc: str
    flows: float
    rtt_s: float
    start_s: float = 0.0
    stop_s: float | None = None
    window: float = 10.0
    ssthresh: float = float("inf")


@dataclass(frozen=True)
class Trajectory:
    """Samples: `windows` (segments), `rates` (packets/s of one flow), `rtts` (s) and `losses` have a row for each time.

    `queue` is in packets, `offered` in packets/s.
    """

    time_s: np.ndarray[Any, Any]
    windows: np.ndarray[Any, Any]
    rates: np.ndarray[Any, Any]
    rtts: np.ndarray[Any, Any]
    queue: np.ndarray[Any, Any]
    loss: np.ndarray[Any, Any]
    offered: np.ndarray[Any, Any]
    losses: np.ndarray[Any, Any]


def integrate(
    *,
    rate: float,
    buffer: float,
    classes: list[FlowClass],
    duration_s: float,
    sample_s: float,
    queue: str = "droptail",
    red: tuple[float, float, float, float, bool, bool] | None = None,
    random_loss: float = 0.0,
    progress: Callable[[float], object] | None = None,
) -> Trajectory:
    """Integrate the equations for `classes` on a link of `rate` packets/s that queues `buffer` packets.

    `queue` is `droptail`, `red` with its parameters in `red` (minimum, maximum, max_p, weight, gentle, wait), or `power`.
    """
    samples = _core.fluid(
        rate, buffer, queue, [astuple(c) for c in classes], duration_s, sample_s, random_loss, red, progress
    )
    windows, rtts, losses, queued, offered, loss = map(np.array, zip(*samples, strict=True))
    return Trajectory(
        time_s=np.arange(len(samples)) * sample_s,
        windows=windows,
        rates=windows / rtts,
        rtts=rtts,
        queue=queued,
        loss=loss,
        offered=offered,
        losses=losses,
    )
