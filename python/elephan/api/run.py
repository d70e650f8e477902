"""The result of a run: in memory, and as a folder.

A folder has `run.json` (scenario, seed, versions), `summary.json`, `flows.parquet`, `queues.parquet`, `transfers.parquet`, and
`crowds.parquet`, `streams.parquet`, `events.parquet`, `variables.parquet` and captures if the scenario requests them. It
appears complete or not at all (`folders`).
"""

import json
import platform
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from elephan import _core
from elephan.api.metrics import METRICS, declared, declared_columns, metrics_of
from elephan.api.pictures.data import Picture
from elephan.api.pictures.kinds import kind_named
from elephan.api.pictures.samples import describe
from elephan.api.scenario import Scenario
from elephan.api.summary import Summary
from elephan.base import notebook
from elephan.base.documents import damage, inside, read_json
from elephan.base.folders import new_folder
from elephan.base.kinds import RUN
from elephan.base.table import Table, text_heads

if TYPE_CHECKING:
    import polars as pl

    from elephan.base.plots import Figure

# Columns that are not the extension module's own: the label of a flow stands beside its number.
LABEL = {"unit": "1", "meaning": "label of the flow"}
# An unknown number in a column of 32-bit integers; in others it is their largest, too.
UNKNOWN = 2**32 - 1

# What `run.json` has besides, where a run was on a kernel.
LINUX_KEYS = ("kernel", "quality")

# The metrics of its one line.
SHOWN = (declared("Summary", "utilisation"), declared("Summary", "fairness"))

# The frames of a run. Those of the second row are written only where there is something in them.
TABLES = ("flows", "queues", "transfers", "crowds", "streams", "events", "variables")
OPTIONAL = ("crowds", "streams", "events", "variables")


def _values(table: str, name: str, values: np.ndarray[Any, Any]) -> pa.Array:
    """A column whose unknown values are null, if it can have any."""
    if not declared_columns()[table, name]["is_nullable"]:
        return pa.array(values)
    unknown = np.isnan(values) if values.dtype.kind == "f" else values == np.iinfo(values.dtype).max
    return pa.array(values, mask=unknown)


@cache
def _described(table: str, name: str, kind: pa.DataType) -> pa.Field:
    told = LABEL if name == "label" else declared_columns()[table, name]
    return pa.field(name, kind, metadata={key: told[key] for key in LABEL})


def _names(names: Sequence[str], numbers: np.ndarray[Any, Any]) -> pa.Array:
    """The name of each number; null for `UNKNOWN`."""
    # Not Arrow's `take`: importing its functions takes a ninth of the time of a short run.
    named = np.array([*names, None], object)
    return pa.array(named[np.where(numbers == UNKNOWN, len(names), numbers)], pa.string())


@dataclass(frozen=True)
class Run:
    """The results of a scenario.

    `summary` has the metrics; `flows`, `queues`, `transfers`, `events` and `variables` are Polars frames of samples.
    """

    scenario: Scenario
    summary: Summary
    links: tuple[str, ...]
    labels: tuple[str, ...]
    provenance: Mapping[str, Any]
    columns: Mapping[str, Mapping[str, Any]] = field(repr=False, default_factory=dict)
    folder: Path | None = None

    def __repr__(self) -> str:
        known = [one for one in SHOWN if one.read(self.summary) is not None]
        figures = [f"{one.name} {one.cell(self.summary)} {one.short_unit}".rstrip() for one in known]
        return f"<Run {self.scenario.name}: {self.scenario.outline}; {', '.join(figures)}>"

    def _repr_html_(self) -> str:
        figures = [one for one in METRICS if one.read(self.summary) is not None]
        together = Table("", [one.head for one in figures], [[one.cell(self.summary) for one in figures]])
        each = metrics_of("FlowSummary")
        rows = [
            [str(number), label, *(one.cell(flow) for one in each)]
            for number, (label, flow) in enumerate(zip(self.labels, self.summary.flows, strict=True), 1)
        ]
        flows = Table("", [*text_heads("flow", "label"), *(one.head for one in each)], rows)
        parts = [flows.to_html(), notebook.picture(self.plot(), "Congestion windows over time")] if rows else []
        facts = [self.scenario.outline, f"seed {self.scenario.document['seed']}"]
        return notebook.shown(self.scenario.name, facts, together.to_html(), *parts)

    def table(self, name: str, only: Sequence[str] | None = None) -> pa.Table:
        """The samples `name`, one of `TABLES`, as Arrow columns with unit and meaning in their metadata.

        `only` selects columns; those that the table lacks are left out.
        """
        if self.folder is not None:
            path = inside(self.folder, f"{name}.parquet")
            with damage(self.folder):
                if not path.exists():
                    return pa.table({})
                with pq.ParquetFile(path) as file:
                    there = file.schema_arrow.names
                    return file.read(None if only is None else [column for column in only if column in there])
        names: dict[str, Sequence[str]] = {
            "link": self.links,
            "kind": _core.EVENT_KINDS,
            "variable": _core.VARIABLES,
            "value_name": _core.VARIABLE_VALUES,
        }
        columns: dict[str, pa.Array] = {}
        for column, values in self.columns.get(name, {}).items():
            if only is not None and column not in only:
                continue
            if column in names:
                columns[column] = _names(names[column], values)
            else:
                columns[column] = _values(name, column, values)
            if column == "flow" and name != "events" and (only is None or "label" in only):
                columns["label"] = _names(self.labels, values)
        return pa.Table.from_arrays(
            list(columns.values()),
            schema=pa.schema([_described(name, key, column.type) for key, column in columns.items()]),
        )

    def _frame(self, name: str) -> "pl.DataFrame":
        import polars as pl  # noqa: PLC0415 - a run that is only written needs no frames

        # Polars reads the names of columns, which a damaged file may have altered, only now.
        with damage(self.folder or Path(self.scenario.name)):
            frame = pl.from_arrow(self.table(name))
        assert isinstance(frame, pl.DataFrame)
        return frame

    @cached_property
    def flows(self) -> "pl.DataFrame":
        """Samples of every flow: time, flow, label, cwnd, ssthresh, srtt, goodput, retransmits, ..."""
        return self._frame("flows")

    @cached_property
    def queues(self) -> "pl.DataFrame":
        """Samples of every link with a rate: packets and bytes waiting, drops, losses, marks, load."""
        return self._frame("queues")

    @cached_property
    def transfers(self) -> "pl.DataFrame":
        """Every transfer: flow, index, start, end, bytes."""
        return self._frame("transfers")

    @cached_property
    def crowds(self) -> "pl.DataFrame":
        """Samples of every crowd of short flows: open connections, transfers finished, goodput; empty if there is none."""
        return self._frame("crowds")

    @cached_property
    def streams(self) -> "pl.DataFrame":
        """Samples of every stream of datagrams: sent, received, missing, goodput; empty if there is none."""
        return self._frame("streams")

    @cached_property
    def events(self) -> "pl.DataFrame":
        """Every event, if the scenario's `trace.events` is set; otherwise empty."""
        return self._frame("events")

    @cached_property
    def variables(self) -> "pl.DataFrame":
        """The variables of the flows' algorithms, if the scenario's `trace.variables` is set; otherwise empty."""
        return self._frame("variables")

    def picture(self, kind: str) -> Picture:
        """The data of a picture of one of `KINDS`. Raises `ScenarioError` for another kind, or if this run lacks them."""
        return kind_named(kind).of_run(self)

    def plot(self, kind: str = "cwnd", *, width: float | None = None, title: bool = True) -> "Figure":
        """Draw a picture of one of `KINDS`: `cwnd`, `goodput`, ..., `width` inches wide. Raises as `picture` does."""
        from elephan.api.pictures import draw  # noqa: PLC0415 - matplotlib takes half a second to import

        picture = self.picture(kind)
        return draw.figure([(picture.title, picture)], describe(self) if title else "", width or draw.WIDTH)

    def save(self, folder: str | Path, *, force: bool = False) -> Path:
        """Write the results folder; an existing one is kept unless `force` is set. Raises as `new_folder` does."""
        with new_folder(folder, force=force) as place:
            self.write_into(place)
        return Path(folder)

    def write_into(self, place: Path) -> None:
        """Write the files of a results folder into `place`, which exists."""
        description = {
            "scenario": self.scenario.document,
            "seed": self.scenario.document["seed"],
            "trace_interval": self.scenario.trace_interval,
            "links": self.links,
            "labels": self.labels,
            "python": platform.python_version(),
            **self.provenance,
        }
        write_json(place / RUN.document, description)
        write_json(place / "summary.json", self.summary.to_dict())
        for name in TABLES:
            table = self.table(name)
            if name in OPTIONAL and table.num_rows == 0:
                continue
            # A file of Python's own tells in plain words what the disk said.
            with (place / f"{name}.parquet").open("wb") as file:
                pq.write_table(table, file, compression="zstd")

    @classmethod
    def load(cls, folder: str | Path) -> "Run":
        """Read a results folder; frames are read on first access. Raises `ScenarioError` if it is damaged."""
        folder = Path(folder)
        keys = ("elephan", "engine", "wall_time_s", "segments_delivered", "events_handled")
        description, summary = RUN.load(folder), read_json(folder, "summary.json")
        with damage(folder):
            return cls(
                scenario=Scenario(description["scenario"]),
                summary=Summary.from_dict(summary),
                links=tuple(description["links"]),
                labels=tuple(description["labels"]),
                provenance={key: description[key] for key in (*keys, *LINUX_KEYS) if key in description},
                folder=folder,
            )


def write_json(path: Path, value: object) -> None:
    """Write indented JSON."""
    path.write_text(json.dumps(value, indent=2) + "\n", encoding="utf-8")
