"""Sweeps: many runs of one scenario, their folder, and what can be said of them."""

from elephan.studies.sweeps.dataset import Dataset, SweepError
from elephan.studies.sweeps.loop import Sweep, SweepRun, sweep
from elephan.studies.sweeps.tables import paired, table

__all__ = ["Dataset", "Sweep", "SweepError", "SweepRun", "paired", "sweep", "table"]
