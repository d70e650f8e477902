"""Samples of a results folder as lines over common times, thinned if there are too many."""

import base64
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from elephan.base.documents import inside

Numbers = np.ndarray[Any, np.dtype[np.float64]]

# Maximum values of a chart in a report, over all lines: 1.6 MB. Larger charts are thinned, with a note.
MOST_VALUES = 400_000


@dataclass(frozen=True)
class Aligned:
    """Lines over the same times; gaps are NaN."""

    time_s: Numbers
    lines: dict[str, Numbers]
    note: str = ""


def align(frame: pl.DataFrame, by: str, column: str, keys: list[Any]) -> Aligned:
    """One line of `column` for each of `keys` in column `by`, over all times at which any of them has a value."""
    parts = {key: frame.filter(pl.col(by) == key) for key in keys}
    times = [part["time_s"].to_numpy() for part in parts.values()]
    time_s = np.unique(np.concatenate(times)) if times else np.empty(0)
    lines = {}
    for key, part in parts.items():
        line = np.full(len(time_s), np.nan)
        line[np.searchsorted(time_s, part["time_s"].to_numpy())] = part[column].to_numpy()
        lines[str(key)] = line
    return Aligned(time_s, lines)


def per_interval(totals: Numbers) -> Numbers:
    """The increase of a cumulative count from sample to sample."""
    return np.diff(totals, prepend=0.0)


def thin(data: Aligned, file: str, most: int = MOST_VALUES) -> Aligned:
    """Keep the smallest and the largest value of each of equal bins of samples, in their original order.

    So no peak is hidden. Lines share the times of their bins, so a time is off by less than a bin. The note describes the
    thinning; `file` has all samples.
    """
    rows = len(data.time_s)
    bins = max(most // (2 * max(len(data.lines), 1)), 1)
    if rows <= 2 * bins:
        return data
    size = -(-rows // bins)
    starts = np.arange(0, rows, size)
    ends = np.minimum(starts + size, rows) - 1
    time_s = np.column_stack([data.time_s[starts], data.time_s[ends]]).ravel()
    lines = {name: _extremes(line, size) for name, line in data.lines.items()}
    note = (
        f"Of {rows:,} samples of each line this report has the minimum and the maximum of every {size:,} "
        f"({len(time_s):,} values); {file} has all samples."
    )
    return Aligned(time_s, lines, note)


def _extremes(line: Numbers, size: int) -> Numbers:
    bins = -(-len(line) // size)
    padded = np.full(bins * size, np.nan)
    padded[: len(line)] = np.where(np.isfinite(line), line, np.nan)
    table = padded.reshape(bins, size)
    least = np.where(np.isnan(table), np.inf, table).argmin(axis=1)
    most = np.where(np.isnan(table), -np.inf, table).argmax(axis=1)
    row = np.arange(bins)
    return np.column_stack([table[row, np.minimum(least, most)], table[row, np.maximum(least, most)]]).ravel()


def packed(values: Numbers, *, exact: bool = False) -> dict[str, str]:
    """Numbers as little-endian floats in base64: 32 bits, which is more than a picture shows, or 64 for times."""
    kind, name = ("<f8", "f64") if exact else ("<f4", "f32")
    return {name: base64.b64encode(np.asarray(values).astype(kind).tobytes()).decode()}


def columns(folder: Path, name: str, wanted: list[str]) -> pl.DataFrame:
    """Some columns of a results file; an empty frame if the file does not exist."""
    path = inside(folder, f"{name}.parquet")
    return pl.read_parquet(path, columns=wanted) if path.exists() else pl.DataFrame()
