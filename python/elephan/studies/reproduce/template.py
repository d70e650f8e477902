"""Author Year: the subject of the source."""

from elephan.studies.judge import Arm, Quantity
from elephan.studies.reproduce.lab import Lab, Report, experiment, printed


@experiment("template/name", "What the table or figure shows", "template/name")
def name(lab: Lab) -> Report:
    """The published numbers beside ours."""
    report = Report(lab)
    arm = Arm("template/name").set({"flow.cc": "reno"})
    report.compare(
        "goodput",
        "Mbit/s",
        [
            Quantity(system, value, uncertainty, (arm,), lambda run: run.summary.goodput_bit_s / 1e6)
            for system, (value, uncertainty) in printed("template", "Table 1", "goodput").items()
        ],
    )
    return report
