"""A table of text and numbers, for the terminal, Markdown, CSV, LaTeX and JSON. All output of tables uses this class."""

import csv
import io
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import takewhile
from typing import Any

from rich.cells import cell_len
from rich.console import Group
from rich.table import Table as Boxed

from elephan.base.numbers import significant
from elephan.base.text import Markdown, latex, markdown, spreadsheet, visible

# The content of a cell: text, a number of any size, or None if it is undefined.
Cell = str | float | None
# A longer word is broken, so that a single word does not determine the layout of a table on the terminal.
MOST_WORD = 40


@dataclass(frozen=True)
class Head:
    """The head of a column: its title, the unit of its numbers, and whether its cells are numbers."""

    text: str
    unit: str = ""
    numeric: bool = True

    @property
    def line(self) -> str:
        """The head on one line: `goodput (Mbit/s)`."""
        return f"{self.text} ({self.unit})" if self.unit else self.text

    @property
    def lines(self) -> str:
        """The head with its unit on a second line."""
        return f"{self.text}\n{self.unit}" if self.unit else self.text


def text_heads(*texts: str) -> list[Head]:
    """Heads of text columns."""
    return [Head(text, numeric=False) for text in texts]


@dataclass(frozen=True)
class Table:
    """A table: its title, heads, rows, and a note below it. Numbers in cells are written with their significant digits."""

    title: str
    head: Sequence[Head]
    rows: Sequence[Sequence[Cell]]
    note: str = ""

    @property
    def texts(self) -> list[list[str]]:
        """The rows as text."""
        return [[_text(cell) for cell in row] for row in self.rows]

    def to_terminal(self, width: int, most_rows: int | None = None) -> Group:
        """The table in a box, `width` characters wide, for `Terminal.print`. Rows beyond `most_rows` are only counted.

        Units are on a second line. If the table is too wide, heads and texts wrap, but numbers do not. If that is not
        enough, the columns continue in further tables below, each of which repeats the leading text columns.
        """
        rows = self.texts[:most_rows]
        left_out = len(self.rows) - len(rows)
        notes = [f"{left_out} more rows"] if left_out else []
        note = "; ".join([*notes, *([self.note] if self.note else [])])
        widths = [_Width.of(head, [row[k] for row in rows], width - 4) for k, head in enumerate(self.head)]
        parts = _parts(self.head, widths, width)
        boxes = []
        for number, part in enumerate(parts):
            boxed = Boxed(
                title=(self.title or None) if number == 0 else None,
                title_justify="left",
                caption=(note or None) if number == len(parts) - 1 else None,
                caption_justify="left",
            )
            for index, fitted in zip(part, _fitted([widths[index] for index in part], width), strict=True):
                head = self.head[index]
                boxed.add_column(head.lines, justify="right" if head.numeric else "left", overflow="fold", width=fitted)
            for row in rows:
                boxed.add_row(*(row[index] for index in part))
            boxes.append(boxed)
        return Group(*boxes)

    def to_markdown(self) -> str:
        """The table as Markdown, without its title and its note."""
        heads = [markdown(head.line) for head in self.head]
        rule = ["---:" if head.numeric else "---" for head in self.head]
        lines = [heads, rule, *([markdown(cell) for cell in row] for row in self.texts)]
        return "".join("| " + " | ".join(line) + " |\n" for line in lines)

    def to_csv(self) -> str:
        """The table as CSV."""
        made = io.StringIO()
        lines = [[head.line for head in self.head], *self.texts]
        csv.writer(made, lineterminator="\n").writerows([spreadsheet(cell) for cell in line] for line in lines)
        return made.getvalue()

    def to_latex(self) -> str:
        """The table as LaTeX, for the package `booktabs`."""
        lines = [" & ".join(map(latex, line)) + r" \\" for line in ([head.line for head in self.head], *self.texts)]
        columns = "".join("r" if head.numeric else "l" for head in self.head)
        body = [r"\toprule", lines[0], r"\midrule", *lines[1:], r"\bottomrule"]
        comment = [f"% {visible(self.title)}"] if self.title else []
        return "\n".join([*comment, rf"\begin{{tabular}}{{{columns}}}", *body, r"\end{tabular}"]) + "\n"

    def to_dicts(self) -> list[dict[str, Cell]]:
        """The rows for JSON: the cells of each row by head and unit, numbers with all digits."""
        keys = [f"{head.text} {head.unit}".strip() for head in self.head]
        return [dict(zip(keys, row, strict=True)) for row in self.rows]

    def to_page(self) -> dict[str, Any]:
        """The data from which the page of reports makes HTML (`Table` in web/src/content.ts)."""
        head = [{"text": one.text, "unit": one.unit, "numeric": one.numeric} for one in self.head]
        return {"title": self.title, "head": head, "rows": self.texts, "note": self.note}


def of_markdown(head: Sequence[Head], rows: Sequence[Sequence[str]]) -> Table:
    """A table for a document. Its cells are already Markdown: links, code, emphasis."""
    return Table("", head, [[Markdown(cell) for cell in row] for row in rows])


def _text(cell: Cell) -> str:
    return "-" if cell is None else cell if isinstance(cell, str) else significant(cell)


@dataclass(frozen=True)
class _Width:
    """The width of a column on the terminal, in characters, if nothing wraps, and if everything that may wrap does."""

    full: int
    least: int

    @classmethod
    def of(cls, head: Head, cells: Sequence[str], most: int) -> "_Width":
        heads = head.lines.split("\n")
        shown = [visible(cell) for cell in cells]
        # A number is one word.
        wraps = heads if head.numeric else [*heads, *shown]
        words = [min(cell_len(word), MOST_WORD) for text in wraps for word in text.split()]
        least = max([*words, *map(cell_len, shown if head.numeric else []), 1])
        full = max([least, *map(cell_len, [*heads, *shown])])
        return cls(min(full, most), min(least, most))


# The box takes a bar and two spaces for each column, and a bar at the end.
def _taken(widths: Iterable[int]) -> int:
    return sum(width + 3 for width in widths) + 1


def _parts(head: Sequence[Head], widths: Sequence[_Width], room: int) -> list[list[int]]:
    """The column numbers of each of the tables into which a table is divided for this width; one table if all columns fit."""
    first = list(takewhile(lambda number: not head[number].numeric, range(len(head))))
    # If the text columns alone leave no room, they are not repeated.
    repeated = first if 2 * _taken(widths[number].least for number in first) < room else []
    parts: list[list[int]] = [[]]
    for number in range(len(head)):
        if parts[-1] and _taken(widths[one].least for one in [*parts[-1], number]) > room:
            parts.append([*repeated] if number not in repeated else [])
        parts[-1].append(number)
    return parts


def _fitted(widths: Sequence[_Width], room: int) -> list[int]:
    """The column widths that fit this width: the widest columns are reduced first."""
    most = max((width.full for width in widths), default=0)
    while most > 1 and _taken(min(width.full, max(width.least, most)) for width in widths) > room:
        most -= 1
    return [min(width.full, max(width.least, most)) for width in widths]
