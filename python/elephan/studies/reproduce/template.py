"""Author Year: the subject of the source."""

from elephan.studies.reproduce.lab import Lab, Report, Row, estimate, experiment, printed


@experiment("template/name", "What the table or figure shows", "template/name")
def name(lab: Lab) -> Report:
    """The runs, and the published numbers that they are compared with."""
    report = Report()
    systems = printed("template", "Table 1", "goodput")
    points = [{"flow.cc": "reno"} for _ in systems]
    found = lab.runs("template/name", points, lab.pick(3, 1)) if points else []
    for (system, (value, uncertainty)), runs in zip(systems.items(), found, strict=True):
        ours = estimate(runs, lambda summary: summary.goodput_bit_s / 1e6)
        report.rows.append(Row("goodput", system, "Mbit/s", value, uncertainty, ours))
    return report
