"""One picture of a results folder, for `elephan plot`."""

from pathlib import Path

from elephan import _core
from elephan.api.pictures.draw import figure
from elephan.api.pictures.kinds import kind_named
from elephan.api.run import Run
from elephan.base.kinds import COMPARISON, RUN, SWEEP, kind_of
from elephan.base.plots import Figure
from elephan.report.read import load_comparison
from elephan.report.sweep import read_sweep


def picture_of(folder: Path, name: str) -> Figure:
    """Draw a picture of a kind. Raises `ScenarioError` for a folder without results that have such a picture."""
    kind, results = kind_named(name), kind_of(folder)
    if results == RUN:
        return Run.load(folder).plot(name)
    if results == COMPARISON:
        return load_comparison(folder).plot(name)
    if results == SWEEP:
        content = read_sweep(folder)
        if content.runs is not None:
            return figure(kind.of_runs(content.runs), f"{content.title}: {content.subtitle}")
    raise _core.ScenarioError(f"{folder}: expected the results of a run, a comparison or a sweep, found none of them")
