"""The fluid equations of `elephan-model`, integrated over time.

Delays depend on the state, because a round-trip time includes the queueing delay. So each step of scipy's Runge-Kutta 5(4) is
no longer than the shortest round-trip time, and earlier states are read from its interpolant (the method of steps). This
stays in Python: jitcdde compiles C at run time, ddeint interpolates all of its past linearly, and the Rust ODE crates have
no delays.

A flow begins in slow start, which doubles its window in each round trip. Slow start ends when the class has had one expected
loss.
"""

from bisect import bisect_right
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import numpy as np
from scipy.integrate import RK45

from elephan import _core

# Relative error of a step. The equations themselves are accurate to about one per cent.
RTOL = 1e-4


@dataclass
class _History:
    """Interpolants of the steps so far, oldest first."""

    first: np.ndarray[Any, Any]
    times: list[float] = field(default_factory=list)
    pieces: list[tuple[float, np.ndarray[Any, Any], np.ndarray[Any, Any]]] = field(default_factory=list)

    def add(self, solver: RK45) -> None:
        dense = solver.dense_output()
        self.times.append(dense.t_old)
        self.pieces.append((dense.h, dense.y_old, dense.Q))

    def at(self, t: float) -> np.ndarray[Any, Any]:
        index = bisect_right(self.times, t) - 1
        if index < 0:
            return self.first
        h, y, q = self.pieces[index]
        x = min((t - self.times[index]) / h, 1.0)
        return np.asarray(y + h * (q @ (x ** np.arange(1, q.shape[1] + 1))))

    def forget(self, before: float) -> None:
        """Occasionally drop older interpolants."""
        if len(self.times) > 4000:
            keep = max(bisect_right(self.times, before) - 1, 0)
            del self.times[:keep], self.pieces[:keep]


@dataclass(frozen=True)
class FlowClass:
    """Flows that are identical in the fluid model."""

    cc: str
    flows: float
    rtt_s: float
    start_s: float = 0.0
    stop_s: float | None = None
    window: float = 10.0
    ssthresh: float = float("inf")


@dataclass(frozen=True)
class Trajectory:
    """Samples: `windows` (segments), `rates` (packets/s of one flow), `loss` have a row for each time; `queue` in packets."""

    time_s: np.ndarray[Any, Any]
    windows: np.ndarray[Any, Any]
    rates: np.ndarray[Any, Any]
    rtts: np.ndarray[Any, Any]
    queue: np.ndarray[Any, Any]
    loss: np.ndarray[Any, Any]
    offered: np.ndarray[Any, Any]
    losses: np.ndarray[Any, Any]


class _Integration:
    """The integration of the equations. A state is the windows of all classes and the averaged queue."""

    def __init__(self, core: _core.Fluid, classes: list[FlowClass], times: np.ndarray[Any, Any]) -> None:
        n = len(classes)
        self.core, self.classes, self.n = core, classes, n
        self.shortest = min(c.rtt_s for c in classes)
        self.active, self.slow = np.zeros(n, bool), np.zeros(n, bool)
        # Expected losses of a flow of each class: in its slow start, and in total.
        self.met, self.lost = np.zeros(n), np.zeros(n)
        self.state, self.t = np.zeros(n + 1), 0.0
        self.history = _History(self.state.copy())
        self.times, self.taken = times, 0
        self.samples, self.losses = np.zeros((len(times), n + 1)), np.zeros((len(times), n))

    def change_flows(self, now: float) -> None:
        """Start the classes that start at this time, and stop those that stop."""
        for i, c in enumerate(self.classes):
            if c.start_s == now and not self.active[i]:
                self.active[i], self.slow[i], self.state[i] = True, c.window < c.ssthresh, c.window
            if c.stop_s == now:
                self.active[i], self.slow[i], self.state[i] = False, False, 0.0

    def slope(self, t: float, y: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        now = y.tolist()
        rounds = self.core.rtts(now)
        earlier = zip(rounds, self.active, strict=True)
        before = [self.history.at(t - r).tolist() if on else now for r, on in earlier]
        change = np.array(self.core.derivative(now, before))
        change[: self.n][~self.active] = 0.0
        for i in np.flatnonzero(self.slow).tolist():
            # The window doubles in a round trip: what is acknowledged now was sent one round trip before.
            change[i] = np.log(2) * max(before[i][i], 1.0) / rounds[i]
        return change

    def run_to(self, end: float, progress: Callable[[float], object] | None) -> None:
        """Integrate until `end`, and restart where a bound or the end of a slow start makes the solution discontinuous."""
        while self.t < end - 1e-12:
            first = min(1e-4, end - self.t)
            solver = RK45(
                self.slope, self.t, self.state, end, max_step=self.shortest, rtol=RTOL, atol=1e-3, first_step=first
            )
            broken = False
            while solver.status == "running" and not broken:
                message = solver.step()
                if solver.status == "failed":
                    raise ArithmeticError(f"the fluid equations could not be integrated at {solver.t:.3f} s: {message}")
                self.history.add(solver)
                self.sample(solver.t)
                state = self.bounded(solver.y)
                broken = self.count_losses(state, solver.t, solver.t - solver.t_old)
                broken = broken or not np.array_equal(state, solver.y)
                self.state, self.t = state, solver.t
                if progress is not None:
                    progress(self.t / self.times[-1])
            longest = max(self.core.rtts(self.state.tolist()))
            self.history.forget(self.t - 2 * longest)

    def sample(self, until: float) -> None:
        while self.taken < len(self.times) and self.times[self.taken] <= until:
            self.samples[self.taken] = self.history.at(self.times[self.taken])
            self.losses[self.taken] = self.lost
            self.taken += 1

    def bounded(self, y: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        state = y.copy()
        state[: self.n] = np.where(self.active, np.maximum(state[: self.n], 1.0), 0.0)
        state[self.n] = max(state[self.n], 0.0)
        return state

    def count_losses(self, state: np.ndarray[Any, Any], t: float, step: float) -> bool:
        """Count expected losses, and end the slow starts in `state` that have met one; returns whether any ended."""
        rounds, ended = self.core.rtts(state.tolist()), False
        for i in np.flatnonzero(self.active).tolist():
            then = self.history.at(t - rounds[i])
            events = float(-np.expm1(-self.core.loss(then.tolist()) * then[i]) / rounds[i] * step)
            self.lost[i] += events
            if not self.slow[i]:
                continue
            self.met[i] += events
            if self.met[i] >= 1.0:
                state[i] *= _core.Model(self.classes[i].cc).beta(state[i])
            if self.met[i] >= 1.0 or state[i] >= self.classes[i].ssthresh:
                self.slow[i], self.met[i], ended = False, 0.0, True
        return ended


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
    core = _core.Fluid(rate, buffer, queue, [(c.cc, c.flows, c.rtt_s) for c in classes], random_loss, red)
    course = _Integration(core, classes, np.arange(0.0, duration_s + sample_s / 2, sample_s))
    stops = {c.stop_s for c in classes if c.stop_s is not None}
    edges = sorted({0.0, duration_s} | {t for t in stops | {c.start_s for c in classes} if t < duration_s})
    for now, then in pairwise(edges):
        course.change_flows(now)
        course.run_to(then, progress)
    n, samples = len(classes), course.samples
    samples[course.taken :], course.losses[course.taken :] = course.state, course.lost
    rows = [row.tolist() for row in samples]
    rounds = np.array([core.rtts(row) for row in rows])
    return Trajectory(
        time_s=course.times,
        windows=samples[:, :n],
        rates=samples[:, :n] / rounds,
        rtts=rounds,
        queue=np.array([core.queue(row) for row in rows]),
        loss=np.array([core.loss(row) for row in rows]),
        offered=np.array([core.offered(row) for row in rows]),
        losses=course.losses,
    )
