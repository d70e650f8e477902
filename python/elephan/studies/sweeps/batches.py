"""Queues planned runs, and groups them into batches for the workers."""

from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

# A batch holds at most this much work, so that the cost of sending it to a worker is small in comparison.
BATCH_S = 0.5
MOST_IN_A_BATCH = 500
# A batch holds at most this share of the waiting runs for each worker, so that all workers end at about the same time.
SHARE = 0.5


@dataclass
class PlannedRun:
    """A run that has yet to be done."""

    point: int
    repeat: int
    run: str
    scenario: str


def work_s(row: Mapping[str, Any], engine: str) -> float | None:
    """How much work a run was: its CPU time, which does not grow when others use the machine; on a kernel, its wall time."""
    seconds: float | None = row.get("wall_s" if engine in ("linux", "kernel") else "cpu_s")
    return seconds


class Waiting:
    """The queue of planned runs, which it groups into batches."""

    def __init__(self, make: Callable[[int, int], PlannedRun], missing: deque[tuple[int, int]]) -> None:
        self._make = make
        self.missing = missing
        # Runs that were lost with their worker run one at a time, with nothing else beside them, to find the one at fault.
        self.suspects: deque[PlannedRun] = deque()
        self._seconds = 0.0

    def __bool__(self) -> bool:
        return bool(self.missing or self.suspects)

    def convicts(self, runs: list[PlannedRun]) -> bool:
        """Whether a suspect among these runs ended the worker. Otherwise all of them become suspects."""
        if self.suspects and runs[0] is self.suspects[0]:
            self.suspects.popleft()
            return True
        self.suspects.extend(runs)
        return False

    def note(self, seconds: float | None) -> None:
        """Update the estimate of the work of a run."""
        if seconds is not None:
            self._seconds = seconds if self._seconds == 0 else 0.9 * self._seconds + 0.1 * seconds

    def cleared(self, runs: list[PlannedRun]) -> None:
        """Clear a suspect that has finished."""
        if self.suspects and runs[0] is self.suspects[0]:
            self.suspects.popleft()

    def batch(self, workers: int) -> list[PlannedRun]:
        """The next batch of runs, for one of so many workers."""
        if self.suspects:
            return [self.suspects[0]]
        most = (
            min(BATCH_S / self._seconds, MOST_IN_A_BATCH, SHARE * len(self.missing) / workers) if self._seconds else 1
        )
        return [self._make(*self.missing.popleft()) for _ in range(max(int(most), 1))]
