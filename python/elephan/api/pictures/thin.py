"""Fewer points for long lines, without hiding a peak."""

from dataclasses import replace

import numpy as np

from elephan.api.pictures.data import Chart, Numbers, sentences

# Maximum values of a chart in a report, over all lines: 1.6 MB. Larger charts are thinned, with a note.
MOST_VALUES = 400_000


def thinned(chart: Chart, most: int = MOST_VALUES) -> Chart:
    """Keep the smallest and the largest value of each of equal bins of samples, in their original order.

    Lines share the times of their bins, so a time is off by less than a bin. The note describes the thinning.
    """
    rows = len(chart.time_s)
    bins = max(most // (2 * max(len(chart.lines), 1)), 1)
    if rows <= 2 * bins:
        return chart
    size = -(-rows // bins)
    starts = np.arange(0, rows, size)
    ends = np.minimum(starts + size, rows) - 1
    time_s = np.column_stack([chart.time_s[starts], chart.time_s[ends]]).ravel()
    lines = [replace(line, values=_extremes(line.values, size)) for line in chart.lines]
    note = (
        f"Of {rows:,} samples of each line this report has the minimum and the maximum of every {size:,} "
        f"({len(time_s):,} values); the results folder has all samples."
    )
    return replace(chart, time_s=time_s, lines=lines, note=sentences(chart.note, note))


def _extremes(line: Numbers, size: int) -> Numbers:
    bins = -(-len(line) // size)
    padded = np.full(bins * size, np.nan)
    padded[: len(line)] = np.where(np.isfinite(line), line, np.nan)
    table = padded.reshape(bins, size)
    least = np.where(np.isnan(table), np.inf, table).argmin(axis=1)
    most = np.where(np.isnan(table), -np.inf, table).argmax(axis=1)
    row = np.arange(bins)
    return np.column_stack([table[row, np.minimum(least, most)], table[row, np.maximum(least, most)]]).ravel()
