"""A table of text, which can be a terminal's, Markdown, CSV, LaTeX or JSON."""

from collections.abc import Sequence
from dataclasses import dataclass

from rich.table import Table as Boxed

from elephan.base.text import csv_table, latex, markdown_table, visible


@dataclass(frozen=True)
class Head:
    """The head of a column: its title, the unit of its numbers, and whether it has numbers at all."""

    text: str
    unit: str = ""
    numeric: bool = True

    @property
    def line(self) -> str:
        """The head on one line: `goodput (Mbit/s)`."""
        return f"{self.text} ({self.unit})" if self.unit else self.text


def names(*texts: str) -> list[Head]:
    """Heads of columns of text."""
    return [Head(text, numeric=False) for text in texts]


@dataclass(frozen=True)
class Table:
    """A table: its title, heads, rows of text, and a note below it."""

    title: str
    head: Sequence[Head]
    rows: Sequence[Sequence[str]]
    note: str = ""

    def to_terminal(self, most_rows: int | None = None) -> Boxed:
        """The table with a box round it, for `Terminal.print`; units on a second line. Rows beyond `most_rows` are counted."""
        left_out = 0 if most_rows is None else max(0, len(self.rows) - most_rows)
        notes = [f"{left_out} more rows"] if left_out else []
        boxed = Boxed(
            title=self.title or None,
            title_justify="left",
            caption="; ".join([*notes, *([self.note] if self.note else [])]) or None,
            caption_justify="left",
        )
        for head in self.head:
            text = f"{head.text}\n{head.unit}" if head.unit else head.text
            boxed.add_column(text, justify="right" if head.numeric else "left", overflow="fold")
        for row in self.rows[:most_rows]:
            boxed.add_row(*row)
        return boxed

    def to_markdown(self) -> str:
        """The table as Markdown, without its title."""
        return markdown_table([head.line for head in self.head], self.rows, [head.numeric for head in self.head])

    def to_csv(self) -> str:
        """The table as CSV."""
        return csv_table([[head.line for head in self.head], *self.rows])

    def to_latex(self) -> str:
        """The table as LaTeX, for the package `booktabs`."""
        lines = [" & ".join(map(latex, line)) + r" \\" for line in ([head.line for head in self.head], *self.rows)]
        columns = "".join("r" if head.numeric else "l" for head in self.head)
        body = [r"\toprule", lines[0], r"\midrule", *lines[1:], r"\bottomrule"]
        comment = [f"% {visible(self.title)}"] if self.title else []
        return "\n".join([*comment, rf"\begin{{tabular}}{{{columns}}}", *body, r"\end{tabular}"]) + "\n"
