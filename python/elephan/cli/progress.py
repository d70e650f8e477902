"""A progress bar on the terminal."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.progress import BarColumn, Progress, ProgressColumn, Task, TaskProgressColumn, TimeRemainingColumn
from rich.text import Text

from elephan.base.text import Terminal, short


class NameColumn(ProgressColumn):
    """The name of the current task."""

    def render(self, task: Task) -> Text:
        """The name as literal text, not as markup or a format."""
        return Text(short(task.description))


@contextmanager
def progress_bar(what: str) -> Iterator[Callable[[float], object]]:
    """Show a progress bar on standard error if that is a terminal. Yields a function to call with the completed share."""
    console = Terminal(stderr=True)
    columns = (NameColumn(), BarColumn(), TaskProgressColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as progress:
        task = progress.add_task(what, total=1.0)
        yield lambda share: progress.update(task, completed=share)
