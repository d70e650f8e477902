"""Runs that wait for a worker, and how they are put into batches."""

from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

# A batch holds so much work, so that handing it over costs little next to it.
BATCH_S = 0.5
MOST_IN_A_BATCH = 500


@dataclass
class PlannedRun:
    """A run that is to be done."""

    point: int
    repeat: int
    run: str
    scenario: str


def work_s(row: Mapping[str, Any], engine: str) -> float | None:
    """How much work a run was: CPU time, which does not grow when others use the machine; on a kernel it is all waiting."""
    seconds: float | None = row.get("wall_s" if engine == "linux" else "cpu_s")
    return seconds


class Waiting:
    """Runs that wait for a worker, and how they are put into batches."""

    def __init__(self, make: Callable[[int, int], PlannedRun], missing: deque[tuple[int, int]]) -> None:
        self._make = make
        self.missing = missing
        # Runs that were lost with their worker go one at a time, and nothing with them, so that the guilty one is found.
        self.suspects: deque[PlannedRun] = deque()
        self._seconds = 0.0

    def __bool__(self) -> bool:
        return bool(self.missing or self.suspects)

    def convicts(self, runs: list[PlannedRun]) -> bool:
        """Whether it was a run of these that took the worker with it; they are suspects from now on."""
        if self.suspects and runs[0] is self.suspects[0]:
            self.suspects.popleft()
            return True
        self.suspects.extend(runs)
        return False

    def note(self, seconds: float | None) -> None:
        """Learn how much work a run is."""
        if seconds is not None:
            self._seconds = seconds if self._seconds == 0 else 0.9 * self._seconds + 0.1 * seconds

    def cleared(self, runs: list[PlannedRun]) -> None:
        """Take back the suspicion of a run that came to its end."""
        if self.suspects and runs[0] is self.suspects[0]:
            self.suspects.popleft()

    def batch(self) -> list[PlannedRun]:
        """The next few."""
        if self.suspects:
            return [self.suspects[0]]
        size = 1 if self._seconds == 0 else int(min(max(BATCH_S / self._seconds, 1), MOST_IN_A_BATCH))
        return [self._make(*self.missing.popleft()) for _ in range(min(size, len(self.missing)))]
