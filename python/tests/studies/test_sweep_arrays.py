"""A sweep as arrays of xarray: each value is at the settings of its run."""

import importlib.util
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sweep_scenarios import fail_at, file_of, small

import elephan
from elephan.base.errors import FailedError

# It brings pandas, which Arrow would import in each run: scripts/package.py has an environment for this file alone.
xarray = pytest.importorskip("xarray")

MIXED = """
duration = "1 s"
path = { rate = "5 Mbit/s", rtt = "20 ms", buffer = "20 packets" }
flow = [{ cc = "reno" }]
[sweep]
repeat = 2
"flow.cc" = ["reno", "htcp"]
[sweep.zip]
"path.rate" = ["2 Mbit/s", "4 Mbit/s", "8 Mbit/s"]
"tcp.initial_window" = [2, 4, 10]
[[sweep.points]]
"path.rtt" = "10 ms"
"path.buffer" = "10 packets"
[[sweep.points]]
"path.rtt" = "40 ms"
"path.buffer" = "50% bdp"
"""


def of_rows(sweep: elephan.Sweep, metric: str) -> dict[tuple[Any, ...], float | None]:
    """A metric by the settings of its run."""
    keys = ("cc", "rate", "initial_window", "rtt", "buffer")
    frame = sweep.to_polars()
    return {tuple(row[key] for key in (*keys, "repeat")): row[metric] for row in frame.iter_rows(named=True)}


def test_keys_are_dimensions(tmp_path: Path):
    sweep = elephan.sweep(small(), tmp_path / "out").run()
    arrays = sweep.to_xarray()
    assert isinstance(arrays, xarray.Dataset)
    assert dict(arrays.sizes) == {"rtt": 3, "cc": 2, "repeat": 2}
    assert arrays["rtt"].values.tolist() == ["10 ms", "20 ms", "40 ms"]
    assert arrays["rtt_s"].values.tolist() == pytest.approx([0.01, 0.02, 0.04])
    assert (arrays["rtt_s"].dims, arrays["rtt_s"].attrs["units"]) == (("rtt",), "s")
    assert arrays["cc"].values.tolist() == ["reno", "htcp"]
    assert arrays["goodput"].attrs["units"] == "bit/s"
    assert arrays["goodput"].attrs["description"]
    assert arrays["fairness"].attrs["units"] == "1"
    assert arrays.attrs["title"] == "small"
    for row in sweep.to_polars().iter_rows(named=True):
        at = arrays.sel(rtt=row["rtt"], cc=row["cc"], repeat=row["repeat"])
        for metric in ("goodput", "fairness", "utilisation", "queue_delay_mean"):
            assert float(at[metric]) == row[metric]
    # Identity, seed and times of a run are no metrics.
    assert not {"point", "seed", "part", "wall_s", "cpu_s", "path.rate"} & {*arrays.variables}
    assert elephan.Dataset(tmp_path / "out").to_xarray().identical(arrays)


def test_zipped_and_listed_keys_share_a_dimension(tmp_path: Path):
    sweep = elephan.sweep(file_of(tmp_path, MIXED), tmp_path / "out").run()
    arrays = sweep.to_xarray()
    assert dict(arrays.sizes) == {"cc": 2, "zip": 3, "points": 2, "repeat": 2}
    assert arrays["rate"].dims == arrays["initial_window"].dims == ("zip",)
    assert arrays["initial_window"].values.tolist() == [2, 4, 10]
    assert arrays["rate_bit_s"].values.tolist() == [2e6, 4e6, 8e6]
    assert arrays["rtt"].dims == arrays["buffer"].dims == ("points",)
    # Not all are quantities of one unit.
    assert "buffer_packets" not in arrays.variables
    rows = of_rows(sweep, "goodput")
    assert len(rows) == arrays["goodput"].size == 24
    for (cc, rate, window, rtt, buffer, repeat), value in rows.items():
        (zipped,) = np.flatnonzero((arrays["rate"] == rate) & (arrays["initial_window"] == window))
        (listed,) = np.flatnonzero((arrays["rtt"] == rtt) & (arrays["buffer"] == buffer))
        assert float(arrays["goodput"].sel(cc=cc, repeat=repeat)[{"zip": zipped, "points": listed}]) == value


def test_a_run_that_failed_or_is_missing_has_no_values(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    fail_at(monkeypatch, lambda document: document["flow"][0]["cc"] == "htcp" and document["path"]["rtt"] == "20 ms")
    sweep = elephan.sweep(small(), tmp_path / "out").run()
    assert sweep.failed == 2
    arrays = sweep.to_xarray()
    gone = np.isnan(arrays["goodput"])
    assert gone.sel(rtt="20 ms", cc="htcp").all()
    assert int(gone.sum()) == 2
    part = elephan.sweep(small(), tmp_path / "part")
    runs = iter(part)
    first = next(runs)
    runs.close()
    found = part.to_xarray()["goodput"]
    assert found.sizes["rtt"] == 3
    assert float(found.sel(rtt=first.settings["path.rtt"], cc=first.settings["flow.cc"], repeat=first.repeat)) > 0
    assert np.isnan(found).any()


def test_what_is_lacking_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    with pytest.raises(elephan.SweepError, match=r"expected the folder of a sweep with sweep\.json, found none"):
        elephan.sweep(small(), tmp_path / "none").to_xarray()
    sweep = elephan.sweep(small(), tmp_path / "out").run()
    find = importlib.util.find_spec
    monkeypatch.setattr(
        "elephan.studies.sweeps.arrays.find_spec", lambda name: None if name == "xarray" else find(name)
    )
    line = r'^xarray: expected it to be installed, found none; pip install "elephan\[xarray\]"$'
    with pytest.raises(FailedError, match=line):
        sweep.to_xarray()
