"""An environment of Gymnasium: a flow of a scenario whose window an agent sets after each round trip."""

import threading
import weakref
from collections.abc import Callable, Sequence
from queue import SimpleQueue
from typing import Any

import numpy as np

from elephan._core import AlgorithmError, Cancel, Decision, Report, ScenarioError
from elephan.api.run import Run
from elephan.api.scenario import Scenario, Source, load
from elephan.base.text import listed
from elephan.engines.run import run as simulate
from elephan.gym.policy import FEATURES, WINDOW_CHANGE, Action, Observation, Policy, observe, utility

try:
    import gymnasium
except ImportError as missing:
    raise ImportError('gymnasium: expected it to be installed, found none; pip install "elephan[gym]"') from missing

# The congestion control of the flow that the agent of an environment controls.
AGENT = "python:elephan.gym:Agent"


class Episode:
    """A run in a thread of its own, which waits at each report of the agent's flow for a decision."""

    def __init__(self, scenario: Scenario) -> None:
        self._scenario = scenario
        self._cancel = Cancel()
        # What the run came to: a report, its results, or why it failed.
        self._events: SimpleQueue[Report | Run | BaseException] = SimpleQueue()
        self._decisions: SimpleQueue[Decision | None] = SimpleQueue()
        self._thread = threading.Thread(target=self._run, name="elephan episode", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        _here.episode = self
        event: Run | BaseException
        try:
            # With `cancel`, the run stays in this thread.
            event = simulate(self._scenario, cancel=self._cancel)
        except BaseException as error:
            event = error
        self._events.put(event)

    def decision(self, report: Report) -> Decision | None:
        """Hand over a report, and wait for the decision: called in the thread of the run."""
        if self._cancel.is_set():
            return None
        self._events.put(report)
        return self._decisions.get()

    def first(self) -> Report | Run:
        """Wait for the first report, or for the end of a run without one. Raises what the run raised."""
        event = self._events.get()
        if isinstance(event, BaseException):
            raise event
        return event

    def after(self, decision: Decision) -> Report | Run:
        """Hand over a decision, and wait for the next report or the end. Raises what the run raised."""
        self._decisions.put(decision)
        return self.first()

    def end(self) -> None:
        """End the run and its thread, if it goes on."""
        self._cancel.set()
        self._decisions.put(None)
        self._thread.join()


# The episode whose run goes on in this thread.
_here = threading.local()


class Agent(Policy):
    """The flow of an environment: its decisions are the actions of the agent."""

    def __init__(self) -> None:
        episode: Episode | None = getattr(_here, "episode", None)
        if episode is None:
            raise RuntimeError("expected a run of elephan.gym.Environment, found another")
        self._episode = episode

    def on_report(self, report: Report) -> Decision | None:
        """Waits for an action."""
        return self._episode.decision(report)


class Environment(gymnasium.Env[Observation, np.ndarray[Any, Any]]):
    """A flow whose window or rate the agent sets after each round trip.

    `scenarios` has exactly one flow with `cc = AGENT` in each. It is a list, from which `reset` draws one and a seed for it, or
    a function that makes one from a `numpy.random.Generator`. An observation has the numbers of `FEATURES`; `action` tells what
    an action means; `reward` is of the report that followed an action, and of the decision that the action became.

    An episode begins with the first report of the flow, and is truncated by its last: the end of the scenario, or of the flow.
    That step has the last observation again, no reward, and the results in `info["run"]`.
    """

    metadata = {"render_modes": []}  # noqa: RUF012 - as the base class has it

    def __init__(
        self,
        scenarios: Sequence[Source] | Source | Callable[[np.random.Generator], Scenario],
        *,
        action: Action = WINDOW_CHANGE,
        reward: Callable[[Report, Decision], float] = utility,
    ) -> None:
        self._scenarios = scenarios if callable(scenarios) else list(map(load, listed(scenarios)))
        if not self._scenarios:
            raise ValueError("scenarios: expected one or more, found none")
        self._action = action
        self._reward = reward
        low, high = (np.array([getattr(one, bound) for one in FEATURES], np.float32) for bound in ("low", "high"))
        self.observation_space = gymnasium.spaces.Box(low, high)
        self.action_space = gymnasium.spaces.Box(np.float32(action.low), np.float32(action.high), (1,))
        # The report of the last observation; None before the first.
        self.report: Report | None = None
        self._flow = 0
        self._end: weakref.finalize[..., Any] | None = None

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Observation, dict[str, Any]]:
        """Begin an episode. `seed` seeds the draw of scenarios; there are no `options`.

        Raises `ScenarioError` for a scenario that cannot be run, or in which not exactly one flow is the agent's.
        """
        super().reset(seed=seed, options=options)
        self.close()
        scenario = self._draw()
        names = [name for name, _ in scenario.congestion_controls]
        engine = scenario.document["engine"]
        if names.count(AGENT) != 1 or engine != "sim":
            expected, found = f"one flow with cc = {AGENT!r} on the engine sim", f"{names.count(AGENT)} on {engine}"
            raise ScenarioError(f"{scenario.name}: expected {expected}, found {found}")
        self._flow = names.index(AGENT)
        self._episode = Episode(scenario)
        # The thread does not hold the environment, so one that nobody has any more ends its run.
        self._end = weakref.finalize(self, self._episode.end)
        try:
            first = self._episode.first()
            if isinstance(first, Run):
                raise ScenarioError(f"{scenario.name}: expected a round trip of flow {self._flow + 1}, found none")
        except BaseException:
            self.close()
            raise
        self.report = first
        return observe(first), {}

    def _draw(self) -> Scenario:
        if callable(self._scenarios):
            return self._scenarios(self.np_random)
        drawn = self._scenarios[int(self.np_random.integers(len(self._scenarios)))]
        return Scenario({**drawn.document, "seed": int(self.np_random.integers(2**32))})

    def step(self, action: np.ndarray[Any, Any]) -> tuple[Observation, float, bool, bool, dict[str, Any]]:
        """Carry out an action, and go on to the next report.

        Raises `AlgorithmError` for an action that is not in the action space, and `RuntimeError` where no episode goes on.
        """
        before = self.report
        if before is None or self._end is None or not self._end.alive:
            raise RuntimeError("expected an episode that goes on, found none; call reset")
        decision = self._action.decide(before, self._checked(action, before))
        try:
            after = self._episode.after(decision)
        except BaseException:
            self.close()
            raise
        if isinstance(after, Run):
            self.close()
            return observe(before), 0.0, False, True, {"run": after}
        self.report = after
        return observe(after), float(self._reward(after, decision)), False, False, {}

    def _checked(self, action: Any, report: Report) -> float:
        values = np.asarray(action)
        if values.shape == (1,) and values.dtype.kind in "fiu" and self._action.low <= values[0] <= self._action.high:
            return float(values[0])
        expected = f"an action of one number from {self._action.low:g} to {self._action.high:g}"
        raise AlgorithmError(
            f"flow {self._flow + 1} ({AGENT}) at {report.time_s:.9g} s: expected {expected}, found {action!r}"
        )

    def close(self) -> None:
        """End the episode, its run and its thread."""
        if self._end is not None:
            self._end()
