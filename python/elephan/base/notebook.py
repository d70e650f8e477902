"""What a notebook shows of an object, as HTML, and of a run as it goes on."""

import base64
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from typing import TYPE_CHECKING, Any

from elephan.base.text import Terminal, literal, visible

if TYPE_CHECKING:
    from elephan.base.plots import Figure

# A shorter run shows no bar, in s; and a bar moves this often, in s.
QUICK_S = 1.0
MOVES_S = 0.25


def shown(title: str, facts: Sequence[str], *parts: str) -> str:
    """An object: its title, what is known of it on one line, and tables and pictures, which are HTML already.

    It has no colours of its own, so that it is read on a light page and on a dark one.
    """
    head = f"<p><strong>{literal(title)}</strong><br>{' · '.join(map(literal, facts))}</p>"
    return f"<div>{head}{''.join(parts)}</div>"


def picture(figure: "Figure", meaning: str) -> str:
    """A figure within HTML; `meaning` says to those who cannot see it what it shows."""
    data = base64.b64encode(figure.png()).decode()
    return f'<img alt="{literal(meaning)}" style="max-width: 100%" src="data:image/png;base64,{data}">'


@contextmanager
def watched(what: str, given: Callable[[float], object] | None = None) -> Iterator[Callable[[float], object] | None]:
    """What a run tells its completed share: `given`, or else a bar, if a person is there: in a notebook or at Python's prompt.

    None if there is neither.
    """
    if given is not None or not hasattr(sys, "ps1"):
        yield given
        return
    bar: _Cell | _Line = _Cell(what) if _in_notebook() else _Line(what)
    begun = time.monotonic()
    last = begun + QUICK_S - MOVES_S

    def move(share: float) -> None:
        nonlocal last
        if (now := time.monotonic()) >= last + MOVES_S:
            last = now
            bar.move(share, (now - begun) * (1 / share - 1) if share > 0 else None)

    try:
        yield move
    finally:
        bar.end()


def _in_notebook() -> bool:
    """Whether this is a kernel of Jupyter, and not IPython on a terminal, which is there too once it is imported."""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None else None
    return shell is not None and hasattr(shell, "kernel")


class _Cell:
    """A bar below a cell. IPython's own display needs no widgets, and leaves nothing in the notebook's file at the end."""

    def __init__(self, what: str) -> None:
        self.what = what
        self.handle: Any = None

    def move(self, share: float, left_s: float | None) -> None:
        text = f"{share:.0%}" + (f", {left_s:.0f} s left" if left_s is not None else "")
        bar = f'<progress value="{share:.4f}" style="width: 20em"></progress>'
        self._show({"text/plain": f"{self.what}: {text}", "text/html": f"{bar} {literal(self.what)}: {text}"})

    def end(self) -> None:
        if self.handle is not None:
            self._show({"text/plain": "", "text/html": ""})

    def _show(self, data: dict[str, str]) -> None:
        if self.handle is None:
            # IPython is there in a notebook, and need not be elsewhere.
            self.handle = import_module("IPython.display").display(data, raw=True, display_id=True)
        else:
            self.handle.update(data, raw=True)


class _Line:
    """A bar on the terminal."""

    def __init__(self, what: str) -> None:
        from rich.markup import escape as plain  # noqa: PLC0415 - needed at a prompt only
        from rich.progress import Progress  # noqa: PLC0415

        self.progress = Progress(console=Terminal(stderr=True), transient=True)
        self.task = self.progress.add_task(plain(visible(what)), total=1.0)

    def move(self, share: float, _: float | None) -> None:
        self.progress.start()
        self.progress.update(self.task, completed=share)

    def end(self) -> None:
        self.progress.stop()
