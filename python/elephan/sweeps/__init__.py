"""Sweeps: many runs of one scenario, their folder, and what can be said of them."""

from elephan.sweeps.dataset import Dataset, SweepError
from elephan.sweeps.loop import Sweep, SweepRun, sweep
from elephan.sweeps.tables import paired, table

__all__ = ["Dataset", "Sweep", "SweepError", "SweepRun", "paired", "sweep", "table"]
