"""Predicted and measured series in one picture: goodput, round-trip time and window over time."""

from collections.abc import Mapping

import matplotlib as mpl
import numpy as np

from elephan.base import plots
from elephan.base.plots import Figure
from elephan.base.text import drawn
from elephan.paths.observed import Array
from elephan.paths.predict import QUANTITIES, Band, Prediction


def overlay(prediction: Prediction, measured: Mapping[str, Array] | None, title: str) -> Figure:
    """Draw the predicted middle and band of each quantity, and the measured series over them if there are any."""
    times = np.array(prediction.time_s)
    with mpl.rc_context(plots.STYLE):
        figure = Figure(figsize=(7.5, 7.5))
        panels = figure.subplots(len(QUANTITIES), 1, sharex=True)
        for axes, (key, (name, unit, factor)) in zip(panels, QUANTITIES.items(), strict=True):
            band: Band = getattr(prediction, key)
            middle, low, high = (np.array(one, float) * factor for one in (band.middle, band.low, band.high))
            axes.fill_between(times, low, high, alpha=0.25, linewidth=0, label="predicted, range")
            axes.plot(times, middle, label=f"predicted, {drawn(prediction.cc)}")
            if measured is not None:
                axes.plot(
                    measured["time_s"], np.asarray(measured[key], float) * factor, color="black", label="measured"
                )
            shown = f"{name} ({prediction.window_is})" if key == "window_bytes" else name
            axes.set_ylabel(f"{shown} ({unit})")
            axes.set_ylim(bottom=0)
        plots.legend(panels[0], 3, 60, loc="lower right")
        panels[-1].set_xlabel("time (s)")
        panels[0].set_title(drawn(title, 90))
    return figure
