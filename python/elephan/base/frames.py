"""Frames of Polars for those who use pandas."""

from importlib.util import find_spec
from typing import Any

import polars as pl

from elephan.base.errors import FailedError


def as_pandas(frame: pl.DataFrame) -> Any:
    """The frame as one of pandas, by Arrow. Raises `FailedError` if pandas is not installed."""
    if find_spec("pandas") is None:
        raise FailedError("to_pandas: expected pandas to be installed, found it is not; pip install pandas")
    return frame.to_pandas()
