"""The kinds of results folders: which files are in them, and what reads them.

They are declared here and not in the rooms that write them, because any command may find a folder of any kind: it identifies
the folder without importing those rooms.
"""

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from pkgutil import resolve_name
from typing import Any

from elephan import _core
from elephan.base.documents import read_json
from elephan.base.text import file_names

Document = Mapping[str, Any]
# The files that commands add to results of any kind: reports, and the pictures of `elephan plot`.
ADDED = (
    r"report(-\d+)?\.(html|pdf|png|svg|md|sqlog|perfetto)"
    r"|(cwnd|goodput|receive-rate|srtt|in-flight|queue|drops|utilisation|sequence"
    r"|delay-cdf|delay-load|phase|queue-window|variables)\.png"
)


@dataclass(frozen=True)
class Kind:
    """A kind of results: what its folders contain, and how they are shown.

    `what` is its name in messages, such as `a run`. The file `document` identifies a folder; it has `keys`, with values of
    these types. A folder of a kind without a document is one for which the function `recognised` returns something.

    `files` and `inner` are regular expressions: of the names of further files, and of the paths of folders of single runs.
    `named` gives the files that the document names. Results for which `replaced` is false are never replaced.

    `title` gives the title of results; without it, that is the name of their folder. The function `report` makes the content
    of a report from a folder. `recognised` and `report` are `MODULE:NAME`, which is imported on use.
    """

    name: str
    what: str
    document: str = ""
    keys: Mapping[str, type] = field(default_factory=dict)
    recognised: str = ""
    files: str = ""
    inner: str = ""
    named: Callable[[Document], Iterable[str]] | None = None
    replaced: bool = True
    title: Callable[[Document], str] | None = None
    report: str = ""

    def load(self, folder: Path) -> dict[str, Any]:
        """The document of a folder.

        Raises `ScenarioError` if it has other content or cannot be read, and `OSError` if it does not exist.
        """
        document = read_json(folder, self.document)
        for key, kind in self.keys.items():
            if not isinstance(value := document.get(key), kind):
                path = folder / self.document
                raise _core.ScenarioError(f"{path}: expected {key} as {self.what} writes it, found {value!r:.40}")
        return document

    def title_of(self, folder: Path) -> str:
        """The title of the results in a folder. Raises as `load` does."""
        document = self.load(folder) if self.document else {}
        return self.title(document) if self.title else folder.name

    def written(self, document: Document) -> re.Pattern[str]:
        """The names of the files that commands write into the folder that has this document."""
        names = (self.document, *(self.named(document) if self.named else ()))
        return re.compile("|".join([*map(re.escape, names), *filter(None, [self.files]), ADDED]))


RUN = Kind(
    "run",
    "a run",
    document="run.json",
    keys={"scenario": dict, "seed": int, "links": list, "labels": list, "elephan": str},
    files=r"summary\.json|(flows|queues|transfers|crowds|streams|events|variables)\.parquet",
    named=lambda run: (f"{file}.pcap" for file in file_names(map(str, run["links"])).values()),
    title=lambda run: str(run["scenario"]["name"]),
    report="elephan.report.read:read_run",
)
COMPARISON = Kind(
    "comparison",
    "a comparison",
    document="comparison.json",
    keys={"runs": dict},
    files=r"table\.(csv|md)",
    inner=r"runs/[^/]+-\d+",
    report="elephan.report.read:read_comparison",
)
DIFFERENCE = Kind(
    "difference",
    "a comparison of engines",
    document="difference.json",
    keys={"elephan": str, "quantities": dict},
    inner=r"sim|kernel|linux(-\d+)?",
    report="elephan.report.difference:read",
)
SWEEP = Kind(
    "sweep",
    "a sweep",
    document="sweep.json",
    keys={"name": str, "code": str, "points": int, "settings": list, "described": list, "scenario": dict},
    replaced=False,
    title=lambda sweep: str(sweep["name"]),
    report="elephan.report.sweep:read_sweep",
)
PATH = Kind(
    "path",
    "a path",
    document="path.json",
    keys={"form": str, "version": int, "source": str},
    files=r"path\.toml|(prediction|measured|recommendation|probe)\.json|overlay\.png|packets\.parquet",
    inner="transfer|tcp-[^/]+",
    report="elephan.report.path:read",
)
HOST = Kind(
    "host",
    "a host",
    document="host.json",
    keys={"figures": list, "limits": list, "elephan": str},
    files=r"host\.toml",
    report="elephan.report.host:read",
)
IMAGE = Kind(
    "image",
    "an image of a kernel",
    document="image.json",
    keys={"version": str, "digest": str, "guest": str},
    files="linux",
)
CHECK = Kind(
    "check",
    "a check",
    document="check.json",
    keys={"elephan": str, "code": str, "expectations": list, "runs": dict},
    files=r".+-\d+-(sim|model|kernel|linux)\.png",
    inner=r"runs/[0-9a-f]+",
    replaced=False,
)
REPRODUCTION = Kind(
    "reproduction",
    "a reproduction",
    recognised="elephan.report.reproduction:experiments",
    report="elephan.report.reproduction:read",
)
# All kinds.
RESULTS = (RUN, COMPARISON, DIFFERENCE, SWEEP, PATH, HOST, IMAGE, CHECK, REPRODUCTION)


def documented(folder: Path) -> Kind | None:
    """The kind whose document a folder has, which may be damaged; None without one."""
    return next((kind for kind in RESULTS if kind.document and (folder / kind.document).is_file()), None)


def kind_of(folder: Path) -> Kind | None:
    """The kind of the results in a folder, which may be damaged; None if it has no results."""
    others = (kind for kind in RESULTS if kind.recognised and resolve_name(kind.recognised)(folder))
    return documented(folder) or next(others, None)
