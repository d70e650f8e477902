"""How long a command will take, and how far it is: a bar on a terminal, otherwise a line now and then on standard error."""

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from rich.progress import BarColumn, Progress, ProgressColumn, Task, TaskProgressColumn, TimeRemainingColumn
from rich.text import Text

from elephan import _core
from elephan.api.scenario import Scenario, dumbbell, flow
from elephan.base.cores import core_count
from elephan.base.text import Terminal, short
from elephan.engines.run import run

# Where there is no terminal, a line comes this often; nothing is said of a command that is expected to take less.
LINES_S = 10.0
# Most processor time of an event of `Scenario.estimate`, where one of `_event_s` takes 25 ns: other runs take up to three times
# as much for an event. The fluid model has no packets, and takes a second or two.
EVENT_S = {"sim": 100e-9, "kernel": 8e-6, "model": 0.0, "linux": 0.0}
USUAL_EVENT_S = 25e-9


class NameColumn(ProgressColumn):
    """The name of the current task."""

    def render(self, task: Task) -> Text:
        """The name as literal text, not as markup or a format."""
        return Text(short(task.description))


def span(seconds: float) -> str:
    """A time for people, in s, min or h."""
    minutes = seconds / 60
    if minutes < 1.5:
        return f"{max(1, round(seconds))} s"
    return f"{minutes:.0f} min" if minutes < 90 else f"{minutes / 60:.1f} h"


def announce(scenarios: Sequence[Scenario], repeat: int = 1, cores: int = 0) -> None:
    """Say on standard error how long so many runs of each scenario take at most, if that is long.

    On so many cores; 0: all. It is an upper bound, about three times what most runs take, if nothing else runs on this machine,
    whose speed is measured first; or the exact time of runs in real time, which come one after the other.
    """
    runs = repeat * len(scenarios)
    cores = min(runs, cores or core_count())
    what = "1 run" if runs == 1 else f"{runs} runs"
    if all(one.document["engine"] == "linux" for one in scenarios):
        real_s = repeat * sum(_core.seconds(one.document["duration"]) for one in scenarios)
        Terminal(stderr=True).message(f"{what} in real time: {span(real_s)}")
        return
    events_s = (one.estimate["events"][0] * EVENT_S[one.document["engine"]] for one in scenarios)
    most_s = repeat * sum(events_s) / cores
    # The measurement takes longer than a short run.
    if most_s > LINES_S / 4 and (most_s := most_s * _event_s() / USUAL_EVENT_S) > LINES_S:
        on = f"{cores} core{'s' if cores > 1 else ''}"
        Terminal(stderr=True).message(f"{what} on {on}: at most about {span(most_s)} if nothing else runs")


def _event_s() -> float:
    """Processor time of an event of a plain run on this machine, from a simulation of some 40 ms."""
    sample = dumbbell(rate="250 Mbit/s", rtt="82 ms", buffer="20% bdp", duration="20 s", flows=[flow("reno")])
    begun_s = time.process_time()
    run(sample)
    return (time.process_time() - begun_s) / sample.estimate["events"][0]


class Lines:
    """What is called with the completed share of a task, and prints a line at times."""

    def __init__(self, what: str) -> None:
        self._what = what
        self._start_s = time.monotonic()
        self._next_s = self._start_s + LINES_S

    def __call__(self, share: float, more: str = "") -> None:
        """Print the share, what else is told, and the time that is left, if the last line is long ago."""
        now_s = time.monotonic()
        if now_s < self._next_s:
            return
        self._next_s = now_s + LINES_S
        left = f", about {span((now_s - self._start_s) * (1 - share) / share)} left" if share > 0 else ""
        Terminal(stderr=True).message(f"{short(self._what)}: {share:.0%}{more}{left}")


@contextmanager
def progress_bar(what: str) -> Iterator[Callable[[float], object]]:
    """Show the progress of a task, from its first share on. Yields a function to call with the completed share."""
    console = Terminal(stderr=True)
    if not console.is_terminal:
        yield Lines(what)
        return
    columns = (NameColumn(), BarColumn(), TaskProgressColumn(), TimeRemainingColumn())
    progress = Progress(*columns, console=console, transient=True)
    task = progress.add_task(what, total=1.0)

    def move(share: float) -> None:
        # Not before: what a task says first, such as how long it will take, would be written into the bar.
        progress.start()
        progress.update(task, completed=share)

    try:
        yield move
    finally:
        progress.stop()
