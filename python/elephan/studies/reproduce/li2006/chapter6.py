"""Li 2006, chapter 6: window traces."""

import matplotlib as mpl
from matplotlib.figure import Figure

from elephan.api.charts import CHARTS
from elephan.base.plots import STYLE
from elephan.studies.reproduce.lab import Lab, Report, experiment
from elephan.studies.reproduce.li2006.systems import SYSTEMS, listed


@experiment("li2006/figure-6.1", "Windows over time at 200 Mbit/s, 150 ms (figures 6.1 to 6.4)", "li2006/traces")
def figure_6_1(lab: Lab) -> Report:
    """HSTCP, Scalable, H-TCP, BIC: plots only, because the source prints no numbers."""
    report, names = Report(), ("HighSpeed TCP", "Scalable TCP", "H-TCP", "BicTCP")
    runs = [r[0] for r in lab.runs("li2006/traces", [{"flow.cc": SYSTEMS[n]} for n in names])]

    def draw() -> Figure:

        with mpl.rc_context(STYLE):
            figure = Figure(figsize=(9, 4))
            for axes, name, run in zip(figure.subplots(2, 2, sharex=True, sharey=True).flat, names, runs, strict=True):
                axes.plot(run.flows["time_s"], run.flows["cwnd_segments"])
                axes.set_title(name)
            figure.supxlabel("time (s)", fontsize=9)
            figure.supylabel(CHARTS["cwnd"].label, fontsize=9)
            return figure

    report.draw = draw
    used = {n: run.summary.utilisation or 0 for n, run in zip(names, runs, strict=True)}
    report.notes.append(f"Utilisation of the link: {listed(used, 3)}.")
    return report
