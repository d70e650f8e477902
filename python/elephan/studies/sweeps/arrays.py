"""The metrics of a sweep as arrays of xarray: a dimension for each key of the sweep, and one for its repeats."""

from collections.abc import Iterator, Mapping
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from elephan import _core
from elephan.api.metrics import METRICS
from elephan.base.errors import FailedError
from elephan.studies.sweeps import names
from elephan.studies.sweeps.columns import kind_of, values_of

if TYPE_CHECKING:
    import xarray as xr

REPEAT = "repeat"
# The metrics that all commands show, by column.
SHOWN = {metric.column: metric for metric in METRICS}


def of_runs(index: pl.DataFrame, description: Mapping[str, Any]) -> "xr.Dataset":
    """The rows of an index, of the sweep with this description. Raises `FailedError` if xarray is not installed."""
    if find_spec("xarray") is None:
        raise FailedError('xarray: expected it to be installed, found none; pip install "elephan[xarray]"')
    import xarray as xr  # noqa: PLC0415 - an optional package

    sweep, settings = description["scenario"]["sweep"], description["settings"]
    short = names.short_names(index.columns, settings, description["described"])
    axes = list(_axes(sweep, short))
    lengths = [length for _, length, _ in axes]
    repeats = int(index[REPEAT].max()) + 1  # type: ignore[arg-type]
    # The last key varies fastest, and a number of a point counts from 1.
    place = np.unravel_index(index["point"].to_numpy() - 1, lengths) if lengths else ()
    at = (*place, index[REPEAT].to_numpy())
    dimensions = [name for name, _, _ in axes] + [REPEAT]
    coordinates: dict[str, Any] = {REPEAT: (REPEAT, np.arange(repeats), {"long_name": "number of the repeat"})}
    for name, _, keys in axes:
        for key in keys:
            coordinates |= _coordinates(name, short[key], values_of(sweep, key), key)
    values: dict[str, Any] = {}
    described = {*settings, *description["described"], *names.OF_A_RUN}
    is_ok = (index["status"] == "ok").to_numpy()
    for column in index.columns:
        of_key = any(column.startswith(f"{key}_") for key in settings)
        if column in described or of_key or not (index[column].dtype.is_numeric() or index[column].dtype == pl.Null):
            continue
        array = np.full((*lengths, repeats), np.nan)
        array[at] = np.where(is_ok, index[column].cast(pl.Float64).fill_null(np.nan).to_numpy(), np.nan)
        values[short[column]] = (dimensions, array, _attributes(column))
    attributes = {"title": description["name"], "elephan": description["code"]}
    return xr.Dataset(values, coordinates, attributes)


def _axes(sweep: Mapping[str, Any], short: Mapping[str, str]) -> Iterator[tuple[str, int, list[str]]]:
    """The dimensions of a sweep in the order of its points: name, length, and the keys that vary along it."""
    for key, values in sweep.items():
        if key == "zip" and values:
            yield key, len(next(iter(values.values()))), [*values]
        elif key == "points" and values:
            yield key, len(values), [*values[0]]
        elif key not in ("zip", "points", REPEAT):
            yield short[key], len(values), [key]


def _coordinates(dimension: str, name: str, values: list[Any], key: str) -> dict[str, Any]:
    """The settings of a key along its dimension; as numbers, too, if all are quantities of one unit."""
    kind = kind_of(values)
    stored = [kind(value) for value in values]
    found: dict[str, Any] = {name: (dimension, stored, {"long_name": key})}
    quantities = [_core.quantity(value) if isinstance(value, str) else None for value in stored]
    units = {None if one is None else one[1] for one in quantities}
    if len(units) == 1 and None not in units:
        (suffix,) = units
        attributes = {"long_name": key, "units": names.unit(f"{key}_{suffix}")}
        found[f"{name}_{suffix}"] = (dimension, [one[0] for one in quantities if one is not None], attributes)
    return found


def _attributes(column: str) -> dict[str, str]:
    shown = SHOWN.get(column)
    told = {"long_name": shown.name, "description": shown.meaning} if shown else {"long_name": column}
    return {**told, "units": names.unit(column)}
