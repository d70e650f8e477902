"""Literal display of names, labels, paths and messages.

The author of a scenario chooses its names, and a results folder may come from anyone. No text in them may act as markup,
mathematics, a formula, or a terminal command: each function here escapes a text so that it is shown literally. Stored data
(JSON, Parquet) keep every text unchanged.
"""

import io
import json
import re
import sys
import unicodedata
from collections.abc import Iterable, Mapping
from html import escape
from typing import Any, Protocol

import typer
from rich.console import Console, RenderableType
from rich.text import Text

# Joiners connect the letters of some scripts, and the parts of some emoji.
JOINERS = "\u200c\u200d"
# Maximum length of a file name in bytes: file systems allow 255, and a suffix and a number are appended.
MOST_FILE_NAME = 180
# Width of a line in characters if no terminal gives one: the widest of our tables fits.
FILE_WIDTH = 200

MARKDOWN = str.maketrans(
    {
        **{letter: f"\\{letter}" for letter in "\\`*_[]|#"},
        **{"<": "&lt;", ">": "&gt;", "&": "&amp;"},
        **{letter: f"&#{ord(letter)};" for letter in "$~@"},
    }
)
# Characters that some dialects of Markdown take for an address, or for the name of an emoji.
ADDRESS = re.compile(r":(?=[/\w])|(?<=www)\.", re.IGNORECASE)
LATEX = str.maketrans(
    {
        **{letter: f"\\{letter}" for letter in "&%$#_{}"},
        "\\": r"\textbackslash{}",
        "~": r"\textasciitilde{}",
        "^": r"\textasciicircum{}",
        "<": r"\textless{}",
        ">": r"\textgreater{}",
        "|": r"\textbar{}",
        "±": r"$\pm$",
    }
)


class Shown(Protocol):
    """What can be shown on a terminal: `Table`."""

    def to_terminal(self, width: int, most_rows: int | None = None, *, boxed: bool = True) -> RenderableType:
        """It, at most `width` characters wide."""


class Markdown(str):
    """A text that is already trusted Markdown: `markdown` leaves it unchanged."""

    __slots__ = ()


def visible(text: str) -> str:
    r"""A text on one line, in which nothing acts: control and formatting characters are written as `\x1b`, `\u202e`, `\n`."""
    return text if text.isprintable() else "".join(map(_letter, text))


def literal(text: str) -> str:
    """A text within HTML, shown as it is."""
    return escape(visible(text))


def _letter(letter: str) -> str:
    is_shown = letter.isprintable() or letter in JOINERS or unicodedata.category(letter) == "Zs"
    return letter if is_shown else letter.encode("unicode_escape").decode("ascii")


def _lines(text: str) -> str:
    return "\n".join(map(visible, text.split("\n")))


def short(text: str, most: int = 40) -> str:
    """A visible text of at most `most` characters; `…` replaces the rest."""
    shown = visible(text)
    return shown if len(shown) <= most else f"{shown[: most - 1]}…"


def drawn(text: str, most: int = 40) -> str:
    """A text for matplotlib: dollar signs are literal, and a label that begins with `_` appears in the legend."""
    shown = short(text, most).replace("$", r"\$")
    return f" {shown}" if shown.startswith("_") else shown


def markdown(text: str) -> str:
    """A text for a line of Markdown, or a table cell: no emphasis, code, links, pictures, mathematics or HTML."""
    if isinstance(text, Markdown):
        return text
    return ADDRESS.sub(lambda found: f"&#{ord(found[0])};", visible(text).translate(MARKDOWN))


def latex(text: str) -> str:
    r"""A text for LaTeX, in any position: after `\\`, a bracket or a star would belong to the command."""
    shown = visible(text).translate(LATEX)
    return "{}" + shown if shown.startswith(("[", "*")) else shown


def spreadsheet(text: str) -> str:
    """A text as a cell of CSV: text that a spreadsheet would treat as a formula gets an apostrophe in front."""
    if len(text) < 2 or text[0] not in "=+-@\t\r":
        return text
    try:
        float(text)
    except ValueError:
        return f"'{text}"
    return text


def toml(value: Any) -> str:
    """A value of a document in TOML, on one line. Texts have no control characters, so those of JSON are the same."""
    if isinstance(value, Mapping):
        return "{ " + ", ".join(f"{toml_key(key)} = {toml(entry)}" for key, entry in value.items()) + " }"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(toml, value)) + "]"
    return json.dumps(value, ensure_ascii=False)


def toml_key(key: str) -> str:
    """A key in TOML."""
    return key if key.replace("_", "").replace("-", "").isalnum() and key.isascii() else json.dumps(key)


def listed(given: Any) -> list[Any]:
    """What was given, as a list: a text, a table, or anything else that is no list, is its one item."""
    return [*given] if isinstance(given, Iterable) and not isinstance(given, str | Mapping) else [given]


def file_name(text: str) -> str:
    """The name of a file or folder for `text`: a single path component, and not a hidden one."""
    plain = re.sub(r"[^\w.+-]+", "-", text).encode()[:MOST_FILE_NAME].decode(errors="ignore")
    return plain.strip("-.") or "run"


def file_names(texts: Iterable[str]) -> dict[str, str]:
    """A file name for each text, all different."""
    names: dict[str, str] = {}
    for text in texts:
        stem = name = file_name(text)
        number = 1
        while name in names.values():
            number += 1
            name = f"{stem}-{number}"
        names[text] = name
    return names


class Terminal(Console):
    """A console that prints strings as text: no markup, no names of emoji, no escape sequences.

    It is as wide as the terminal, or `FILE_WIDTH` if the output goes to a file or to another program.
    """

    def __init__(self, *, stderr: bool = False):
        super().__init__(stderr=stderr)
        if not self.is_terminal:
            self.width = FILE_WIDTH

    def render_str(self, text: str, **options: Any) -> Text:
        """Convert a string that is printed, including the cells and titles of tables."""
        return super().render_str(_lines(text), **{**options, "markup": False, "emoji": False})

    def show(self, table: Shown, most_rows: int | None = None) -> None:
        """Print a table, as wide as this terminal; without a box where the output goes to a file or to another program."""
        self.print(table.to_terminal(self.width, most_rows, boxed=self.is_terminal))

    def message(self, text: str) -> None:
        """Print a message on one line, whatever its length."""
        self.print(text, highlight=False, soft_wrap=True)

    def strong(self, text: str, rest: str) -> None:
        """Print a message on one line with an emphasised beginning."""
        whole = Text.assemble(self.render_str(text, style="bold"), self.render_str(rest))
        self.print(whole, highlight=False, soft_wrap=True)


def echo(text: str) -> None:
    """Write a text to standard output unchanged, for programs and papers; escaped if standard output is a terminal."""
    typer.echo(_lines(text) if sys.stdout.isatty() else text, nl=False)


def accept_any_letter() -> None:
    """Show characters that the terminal's encoding lacks as escapes; otherwise they would end the program with an error."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
