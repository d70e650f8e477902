"""A table of text and numbers, for the terminal, Markdown, CSV, LaTeX and JSON. All output of tables uses this class."""

import csv
import io
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import takewhile
from typing import Any

from rich.box import HEAVY_HEAD
from rich.cells import cell_len
from rich.console import Group
from rich.table import Table as Boxed
from rich.text import Text

from elephan.base.numbers import significant
from elephan.base.text import Markdown, latex, literal, markdown, spreadsheet, visible

# The content of a cell: text, a number of any size, or None if it is undefined.
Cell = str | float | None
# A longer word is broken, so that a single word does not determine the layout of a table on the terminal.
MOST_WORD = 40
# Rows of a table in HTML.
MOST_ROWS = 50


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
    # Row and column of each cell that is marked, and what the mark means.
    marked: frozenset[tuple[int, int]] = frozenset()
    mark: str = ""

    @property
    def texts(self) -> list[list[str]]:
        """The rows as text."""
        return [[_text(cell) for cell in row] for row in self.rows]

    def to_terminal(self, width: int, most_rows: int | None = None, *, boxed: bool = True) -> Group:
        """The table, at most `width` characters wide, for `Terminal.print`. Rows beyond `most_rows` are only counted.

        Units are on a second line. If the table is too wide, heads and texts wrap, but numbers do not. If that is not
        enough, rows and columns change places. Where that is too wide, too, the columns continue in further tables below,
        each of which repeats the leading text columns.
        """
        rows = self.texts[:most_rows]
        left_out = len(self.rows) - len(rows)
        told = [f"{left_out} more rows" if left_out else "", self._explained("bold" if boxed else "*"), self.note]
        note = "; ".join(part for part in told if part)
        if not boxed:
            rows = self._marked("{} *", str)[:most_rows]
        if len(_parts(self.head, self._widths(rows, width), width)) > 1 and left_out == 0:
            turned = self._turned()
            if len(_parts(turned.head, turned._widths(turned.texts, width), width)) == 1:
                return turned.to_terminal(width, boxed=boxed)
        widths = self._widths(rows, width)
        parts = _parts(self.head, widths, width)
        boxes = []
        for number, part in enumerate(parts):
            made = Boxed(
                title=(self.title or None) if number == 0 else None,
                title_justify="left",
                caption=(note or None) if number == len(parts) - 1 else None,
                caption_justify="left",
                show_header=any(self.head[index].text for index in part),
                box=HEAVY_HEAD if boxed else None,
                pad_edge=boxed,
                padding=(0, 1) if boxed else (0, 2, 0, 0),
            )
            for index, fitted in zip(part, _fitted([widths[index] for index in part], width), strict=True):
                head = self.head[index]
                made.add_column(head.lines, justify="right" if head.numeric else "left", overflow="fold", width=fitted)
            for place, row in enumerate(rows):
                strong = [boxed and (place, index) in self.marked for index in part]
                cells = [row[index] for index in part]
                made.add_row(
                    *(
                        Text(visible(cell), style="bold") if mark else cell
                        for cell, mark in zip(cells, strong, strict=True)
                    )
                )
            boxes.append(made)
        return Group(*boxes)

    def _widths(self, rows: Sequence[Sequence[str]], width: int) -> list["_Width"]:
        return [_Width.of(head, [row[k] for row in rows], width - 4) for k, head in enumerate(self.head)]

    def _turned(self) -> "Table":
        """The table with a row for each column of numbers, and a column for each row, under the texts that identify it."""
        named = len(_named(self.head))
        above = [Head("\n".join(cell for cell in row[:named] if cell)) for row in self.texts]
        rows = [[head.line, *(row[named + k] for row in self.texts)] for k, head in enumerate(self.head[named:])]
        corner = Head(" ".join(head.text for head in self.head[:named]), numeric=False)
        marked = frozenset((column - named, 1 + row) for row, column in self.marked)
        return Table(self.title, [corner, *above], rows, self.note, marked, self.mark)

    def _explained(self, mark: str) -> str:
        return f"{mark}: {self.mark}" if self.marked else ""

    def _marked(self, mark: str, escape: Callable[[str], str]) -> list[list[str]]:
        """The rows as text, each cell escaped, and the marked ones as `mark` has it: `**{}**`."""
        return [
            [mark.format(escape(cell)) if (k, n) in self.marked else escape(cell) for n, cell in enumerate(row)]
            for k, row in enumerate(self.texts)
        ]

    def only(self, columns: Sequence[int]) -> "Table":
        """The table with these columns, in this order."""
        places = {column: place for place, column in enumerate(columns)}
        return replace(
            self,
            head=[self.head[column] for column in columns],
            rows=[[row[column] for column in columns] for row in self.rows],
            marked=frozenset((row, places[column]) for row, column in self.marked if column in places),
        )

    def __repr__(self) -> str:
        return f"<Table{f' {self.title}' if self.title else ''}: {len(self.rows)} rows, {len(self.head)} columns>"

    def to_html(self) -> str:
        """The table as HTML without colours of its own, with title and note; rows beyond `MOST_ROWS` are only counted."""

        def cell(tag: str, head: Head, inside: str) -> str:
            style = "text-align: right; white-space: nowrap" if head.numeric else "text-align: left"
            return f'<{tag} style="{style}">{inside}</{tag}>'

        units = [f"<br><small>{literal(head.unit)}</small>" if head.unit else "" for head in self.head]
        heads = "".join(
            cell("th", head, literal(head.text) + unit) for head, unit in zip(self.head, units, strict=True)
        )
        rows = [
            "".join(cell("td", head, inside) for head, inside in zip(self.head, row, strict=True))
            for row in self._marked("<strong>{}</strong>", literal)[:MOST_ROWS]
        ]
        more = len(self.rows) - len(rows)
        notes = [one for one in (f"{more} more rows" if more else "", self._explained("bold"), self.note) if one]
        title = f"<caption>{literal(self.title)}</caption>" if self.title else ""
        body = "".join(f"<tr>{row}</tr>" for row in rows)
        note = f"<p><small>{literal('; '.join(notes))}</small></p>" if notes else ""
        table = f"<table>{title}<thead><tr>{heads}</tr></thead><tbody>{body}</tbody></table>"
        return f'<div style="overflow-x: auto">{table}</div>{note}'

    _repr_html_ = to_html

    def to_markdown(self) -> str:
        """The table as Markdown, without its title and its note."""
        heads = [markdown(head.line) for head in self.head]
        rule = ["---:" if head.numeric else "---" for head in self.head]
        lines = [heads, rule, *self._marked("**{}**", markdown)]
        return "".join("| " + " | ".join(line) + " |\n" for line in lines)

    def to_csv(self) -> str:
        """The table as CSV."""
        made = io.StringIO()
        lines = [[head.line for head in self.head], *self.texts]
        csv.writer(made, lineterminator="\n").writerows([spreadsheet(cell) for cell in line] for line in lines)
        return made.getvalue()

    def to_latex(self) -> str:
        """The table as LaTeX, for the package `booktabs`."""
        rows = [[latex(head.line) for head in self.head], *self._marked(r"\textbf{{{}}}", latex)]
        lines = [" & ".join(line) + r" \\" for line in rows]
        columns = "".join("r" if head.numeric else "l" for head in self.head)
        body = [r"\toprule", lines[0], r"\midrule", *lines[1:], r"\bottomrule"]
        comment = [f"% {visible(self.title)}"] if self.title else []
        return "\n".join([*comment, rf"\begin{{tabular}}{{{columns}}}", *body, r"\end{tabular}"]) + "\n"

    def written(self, form: str) -> str:
        """The table as `csv`, as `latex` with its title, or as `md`, Markdown with title and note."""
        if form == "csv":
            return self.to_csv()
        if form == "latex":
            return self.to_latex()
        told = "; ".join(part for part in (self._explained("bold"), self.note) if part)
        title, note = (f"{markdown(text)}\n" if text else "" for text in (self.title, told))
        return "\n".join(part for part in (title, self.to_markdown(), note) if part)

    def to_dicts(self) -> list[dict[str, Cell]]:
        """The rows for JSON: the cells of each row by head and unit, numbers with all digits."""
        keys = [f"{head.text} {head.unit}".strip() for head in self.head]
        return [dict(zip(keys, row, strict=True)) for row in self.rows]

    def to_page(self) -> dict[str, Any]:
        """The data from which the page of reports makes HTML (`Table` in web/src/content.ts)."""
        head = [{"text": one.text, "unit": one.unit, "numeric": one.numeric} for one in self.head]
        note = " ".join(part for part in (f"{self._explained('Bold')}." if self.marked else "", self.note) if part)
        return {"title": self.title, "head": head, "rows": self.texts, "note": note, "marked": sorted(self.marked)}


def of_records(found: Sequence[Mapping[str, Any]]) -> Table:
    """Records with the same keys as a table, with all digits."""

    def text(value: Any) -> str:
        return "" if value is None else value if isinstance(value, str) else repr(value)

    return Table("", text_heads(*(found[0] if found else ())), [[*map(text, one.values())] for one in found])


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


def _named(head: Sequence[Head]) -> list[int]:
    """The leading columns of text, which identify a row; in a table of text alone the first."""
    texts = list(takewhile(lambda number: not head[number].numeric, range(len(head))))
    return texts if len(texts) < len(head) else texts[:1]


def _parts(head: Sequence[Head], widths: Sequence[_Width], room: int) -> list[list[int]]:
    """The column numbers of each of the tables into which a table is divided for this width; one table if all columns fit."""
    first = _named(head)
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
