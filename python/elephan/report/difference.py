"""A scenario on the simulator and on a kernel, as a report."""

import re
from dataclasses import replace
from pathlib import Path

from elephan.api.run import Run
from elephan.base.documents import inside
from elephan.base.kinds import DIFFERENCE
from elephan.base.text import file_name
from elephan.report.content import Content
from elephan.report.read import beside
from elephan.studies.side_by_side import Pair, table


def read(folder: Path) -> Content:
    """The report of a folder that `elephan compare --engines` wrote."""
    DIFFERENCE.load(folder)
    names = sorted((path.name for path in folder.iterdir()), key=lambda name: (name != "sim", name))
    folders = {name: inside(folder, name) for name in names if re.fullmatch(DIFFERENCE.inner, name)}
    runs = {name: Run.load(place) for name, place in folders.items()}
    kernel = [run for name, run in runs.items() if name != "sim"]
    scenario, engine = kernel[0].scenario, str(kernel[0].provenance["engine"])
    pair = Pair(folder.resolve().name, engine, runs.get("sim"), tuple(kernel))
    both = beside(runs, folders)
    return replace(
        both,
        kind=DIFFERENCE.name,
        title=pair.name,
        command=f"elephan compare {file_name(scenario.name)}.toml --engines sim,{engine}",
        scenario=scenario.toml,
        tables=[table([pair]), *both.tables],
        notes=["The scenario below is the kernel's."],
    )
