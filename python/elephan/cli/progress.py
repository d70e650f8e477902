"""A bar on the terminal for what takes a while."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.progress import BarColumn, Progress, ProgressColumn, Task, TaskProgressColumn, TimeRemainingColumn
from rich.text import Text

from elephan.base.text import Terminal, short


class NameColumn(ProgressColumn):
    """What is under way."""

    def render(self, task: Task) -> Text:
        """Its name, which is neither markup nor a format."""
        return Text(short(task.description))


@contextmanager
def progress_bar(what: str) -> Iterator[Callable[[float], object]]:
    """Show a bar on standard error, where that is a terminal; call what it gives with the share that is done."""
    console = Terminal(stderr=True)
    columns = (NameColumn(), BarColumn(), TaskProgressColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as progress:
        task = progress.add_task(what, total=1.0)
        yield lambda share: progress.update(task, completed=share)
