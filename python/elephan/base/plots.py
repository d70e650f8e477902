"""Figures: one style for all of them."""

import contextlib
import io
import shutil
import warnings
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import matplotlib as mpl
import matplotlib.figure
import numpy as np
import polars as pl
from cycler import cycler
from matplotlib.axes import Axes

from elephan import _core
from elephan.base.errors import FailedError
from elephan.base.folders import new_file
from elephan.base.text import Terminal, latex, visible

# The colours of Okabe and Ito, which colour-blind readers can distinguish.
COLOURS = ["#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#8A7A00"]

STYLE: Any = {
    "axes.edgecolor": "#666666",
    "axes.grid": True,
    "axes.labelcolor": "#333333",
    "axes.prop_cycle": cycler(color=COLOURS),
    "axes.spines.right": False,
    "axes.spines.top": False,
    "axes.titlelocation": "left",
    "axes.titlesize": 10,
    "figure.constrained_layout.use": True,
    "figure.dpi": 110,
    "font.size": 9,
    "grid.color": "#e6e6e6",
    "grid.linewidth": 0.6,
    "legend.frameon": False,
    "lines.linewidth": 1.1,
    "xtick.color": "#666666",
    "ytick.color": "#666666",
}

# Fonts of a PDF are embedded as TrueType: journals refuse matplotlib's default, Type 3.
EMBEDDED: Any = {"pdf.fonttype": 42}

# Which LaTeX measures the texts of PGF: the first that is installed.
LATEX = ("pdflatex", "xelatex", "lualatex")
INSTALL = "apt-get install texlive-latex-extra"

# Maximum points of a line: more than a screen has columns. The extremes of each bin are kept.
MOST_POINTS = 2000


@contextlib.contextmanager
def any_letters() -> Iterator[None]:
    """Draw characters that the font lacks as boxes, without a warning for each."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph .* missing from font")
        yield


def _system() -> str:
    """The LaTeX for PGF. Raises `FailedError` if none is installed."""
    found = next(filter(shutil.which, LATEX), None)
    if found is None:
        raise FailedError(
            f"pgf: expected {', '.join(LATEX[:-1])} or {LATEX[-1]} to be installed ({INSTALL}), found none"
        )
    return found


@contextlib.contextmanager
def _for_latex() -> Iterator[None]:
    """Write PGF, with texts in the fonts of the document. Raises `FailedError` if LaTeX is missing or refuses a text."""
    # Imported by those who need it: it takes time.
    from matplotlib.backends import backend_pgf  # noqa: PLC0415

    class Renderer(backend_pgf.RendererPgf):
        """Matplotlib's passes a name such as `A&B` to LaTeX as it is."""

        def draw_text(
            self, gc: Any, x: float, y: float, s: str, prop: Any, angle: float, ismath: Any = False, mtext: Any = None
        ) -> None:
            base: Any = super()
            base.draw_text(gc, x, y, s if ismath else latex(s), prop, angle, ismath, mtext)

        def get_text_width_height_descent(self, s: str, prop: Any, ismath: Any) -> Any:
            base: Any = super()
            return base.get_text_width_height_descent(s if ismath else latex(s), prop, ismath)

    with mpl.rc_context({"pgf.texsystem": _system(), "pgf.rcfonts": False}):
        original = backend_pgf.RendererPgf
        vars(backend_pgf)["RendererPgf"] = Renderer
        try:
            yield
        except (backend_pgf.LatexError, ValueError, BrokenPipeError) as error:
            # One that lacks a package may end before it was asked anything.
            lines = str(error).splitlines()
            found = visible(next((line for line in lines if line.startswith("!")), lines[0]))
            missing = not isinstance(error, ValueError)
            expected = f"LaTeX's packages to be installed ({INSTALL})" if missing else "texts that LaTeX can set"
            raise FailedError(f"pgf: expected {expected}, found: {found}") from error
        finally:
            vars(backend_pgf)["RendererPgf"] = original


class Figure(matplotlib.figure.Figure):
    """A figure that a notebook shows where it is a cell's value, with or without `%matplotlib inline`."""

    def png(self, scale: float = 1.0) -> bytes:
        """The figure as PNG, with `scale` pixels for each of its own."""
        made = io.BytesIO()
        self.savefig(made, format="png", dpi=scale * self.dpi)
        return made.getvalue()

    def savefig(self, *arguments: Any, **options: Any) -> None:
        """Write the figure as matplotlib does, with fonts that journals accept; PGF raises `FailedError` without LaTeX."""
        name = str(arguments[0] if arguments else options.get("fname"))
        is_pgf = options.get("format", Path(name).suffix[1:]) == "pgf"
        with any_letters(), mpl.rc_context(EMBEDDED), _for_latex() if is_pgf else contextlib.nullcontext():
            super().savefig(*arguments, **options)

    def _repr_png_(self) -> tuple[bytes, dict[str, int]]:
        # Twice the pixels, for screens of high density, in the size of once. IPython calls this unless `%matplotlib inline`
        # has registered a way for all figures, which then comes first.
        width, height = (round(inches * self.dpi) for inches in self.get_size_inches())
        return self.png(2.0), {"width": width, "height": height}


FORMATS = ("png", "svg", "pdf", "pgf")


def check_format(path: Path) -> None:
    """Raise `ScenarioError` unless the file's name ends in one of `FORMATS`, or has no suffix; `FailedError` as `_system`."""
    if path.suffix and path.suffix[1:] not in FORMATS:
        raise _core.ScenarioError(
            f"--out: expected a name that ends in one of {', '.join(FORMATS)}, found {path.name!r}"
        )
    if path.suffix == ".pgf":
        _system()


def save(figure: Figure, path: Path) -> None:
    """Write a picture in the format of the file name's suffix, PNG without a suffix; completely or not at all."""
    with new_file(path) as place:
        write(figure, place, path.suffix.lstrip(".") or "png")


def write(figure: Figure, place: Path, kind: str) -> None:
    """Write a picture of this format to a temporary place: the same figure in the same bytes, without its date."""
    undated = {"svg": {"metadata": {"Date": None}}, "pdf": {"metadata": {"CreationDate": None}}}
    with mpl.rc_context({"svg.hashsalt": "elephan"}):
        figure.savefig(place, format=kind, **undated.get(kind, {}))


def save_beside(folder: Path, figures: Mapping[str, Callable[[], Figure]]) -> list[str]:
    """Draw figures into a complete results folder, as `NAME.png`; returns the names of those that succeeded.

    A figure that fails gives a line on standard error.
    """
    there = []
    for name, draw in figures.items():
        picture = folder / f"{name}.png"
        try:
            save(draw(), picture)
            there.append(name)
        except Exception as error:
            reason = visible(str(error)) or type(error).__name__
            Terminal(stderr=True).message(f"{picture}: expected a picture, found: {reason}")
    return there


def thin(time: np.ndarray[Any, Any], value: np.ndarray[Any, Any]) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """Keep the smallest and the largest value of each of `MOST_POINTS / 2` bins, so that no peak is hidden."""
    if len(value) <= MOST_POINTS:
        return time, value
    edges = np.linspace(0, len(value), MOST_POINTS // 2 + 1).astype(int)[:-1]
    bins = np.split(np.arange(len(value)), edges[1:])
    keep = np.unique(np.concatenate([[b[value[b].argmin()], b[value[b].argmax()]] for b in bins]))
    return time[keep], value[keep]


def legend(axes: Axes, most: int, letters: int, **style: Any) -> None:
    """A legend with at most `most` columns, and fewer if the axes are too narrow for their labels."""
    labels = axes.get_legend_handles_labels()[1]
    longest = max(map(len, labels), default=0) + 5
    axes.legend(ncols=max(1, min(most, letters // longest)), **style)


def data_of(figure: Figure) -> pl.DataFrame:
    """The points of all lines of a figure as drawn: panel, line, x and y."""
    parts = [
        pl.DataFrame(
            {
                "panel": axes.get_title() or axes.get_title(loc="left") or str(number),
                "line": str(line.get_label()).removeprefix("_"),
                "x": np.asarray(line.get_xdata(), dtype=float),
                "y": np.asarray(line.get_ydata(), dtype=float),
            }
        )
        for number, axes in enumerate(figure.axes, start=1)
        for line in axes.lines
    ]
    return pl.concat(parts) if parts else pl.DataFrame()
