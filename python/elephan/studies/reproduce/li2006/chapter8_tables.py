"""Li 2006, Tables 8.1 to 8.4: two flows at 250 Mbit/s and 82 ms, under each set of choices that the thesis leaves open."""

from collections import Counter
from collections.abc import Callable, Collection
from dataclasses import dataclass
from functools import partial
from typing import Any

from elephan.api.run import Run
from elephan.studies.judge import Sample, Statistic
from elephan.studies.reproduce.declare import Chapter, Points, Rows
from elephan.studies.reproduce.lab import Report, printed
from elephan.studies.reproduce.li2006 import cells
from elephan.studies.reproduce.li2006.systems import AS_PRINTED, LOSS_BASED, NEW, OVERHEAD, SYSTEMS

SCENARIOS = {
    cells.SYMMETRIC: "symmetric",
    cells.SMALL: "unequal round-trip times, small buffer",
    cells.LARGE: "unequal round-trip times, large buffer",
    cells.FRIENDLY: "beside Standard TCP",
}
# The thesis has 20 for a flow below 100 Mbit/s, 8 below 10.
LARGE_ALPHA = '{ name = "fast", alpha_low = 200, alpha_mid = 200 }'
PER_BIT = "read as bytes retransmitted for each bit transferred, over whole tests with their slow starts"


def _per_bit(run: Run) -> float:
    """Overhead of the whole test with bytes retransmitted for each bit transferred, in the unit of the table."""
    return cells.overhead(run, whole_test=True) / 8


def _goodput(run: Run) -> float:
    """The aggregate goodput in units of 2^20 bit/s."""
    return run.summary.goodput_bit_s / cells.MEBIBIT


@dataclass(frozen=True)
class Table:
    """A printed table: its metric's name in the published numbers, what is read, the band, and half a unit of its last digit."""

    metric: str
    unit: str
    read: Callable[[Run], Sample]
    band: float
    digit: float
    scenarios: tuple[str, ...] = tuple(SCENARIOS)
    looks: tuple[int, ...] = cells.REPEATS
    # Another reading of the column, with its name.
    other: tuple[str, Callable[[Run], Sample]] | None = None


TABLES = {
    "8.1": Table("goodput", "Mibit/s", _goodput, 0.03, 0.05, other=("8.1 in 10^6 bit/s", cells.goodput)),
    "8.2": Table("fairness", "1", cells.fairness, 0.15, 0.005),
    "8.3": Table("convergence", "s", cells.until_converged, 0.3, 0.05, (cells.SYMMETRIC,), cells.TIMES),
    "8.4": Table("overhead", OVERHEAD.short_unit, cells.overhead, 0.3, 0.005, other=("8.4 for each bit", _per_bit)),
}
TABLE_CHOICES = (
    *cells.CHOICES,
    "bands are ours: 3 % for goodput, as the New-TCP algorithms are within 5 % of each other; 15 % for fairness, 30 % for times and overheads. To them comes "
    "the 95 % interval of the printed standard error, which is of five runs and, like the number, may have been rounded.",
    "unit of Table 8.1: 2^20 bit/s, in which its largest goodput is the payload capacity of 250 Mbit/s.",
)
# The cell of the tables.
TABLE_CELL = {"rate": 250, "rtt": 82}


def numbers(
    number: str, scenario: str, read: Callable[[Run], Sample] | None = None, systems: Collection[str] = tuple(SYSTEMS)
) -> list[Points]:
    """The printed numbers of a table for one scenario, and what is read of their cells if that is not the table's own column."""
    table = TABLES[number]
    found = printed("li2006", f"Table {number}", table.metric, scenario)
    rows = [
        (name, value, (error or 0.0) + table.digit)
        for name in systems
        if name in found
        for value, error in [found[name]]
    ]
    statistic: Statistic = "median" if read in (cells.converged, cells.shared) else "mean"
    cell = {"scenario": scenario, **TABLE_CELL, "of_repeats": 5}
    made = [Points("{system}", read or table.read, statistic=statistic).at({"system printed error": rows}, **cell)]
    if number == "8.3" and "Scalable TCP" in systems:
        # Printed as "-": it does not converge to fairness, says section 8.4.3.
        never = Points("{system}", cells.shared, statistic="median")
        made.append(never.at(cell, system="Scalable TCP", printed=None, of_repeats=0))
    return made


def _show(
    report: Chapter, number: str, scenario: str, *rows: Rows, name: str = "", unit: str = "", **more: Any
) -> None:
    """Compare a table for a scenario; with a name, show beside that what a change makes of it."""
    table = TABLES[number]
    group = f"{table.metric}, {SCENARIOS[scenario]}"
    if name:
        group, more = f"{group}, {name}", {"cause_of": group, "changed": name, **more}
    report.rows(group, unit or table.unit, *rows, band=table.band, looks=table.looks, **more)


def _compare(report: Chapter, number: str, *of_fast: str) -> None:
    """Compare a table, and show beside it what each other set of choices makes of it.

    In scenarios `of_fast` show too what FAST's row becomes if its second flow starts after 100 s, and if its alpha is 200 at every rate.
    """
    for scenario in TABLES[number].scenarios:
        _show(report, number, scenario, *numbers(number, scenario), variants=cells.whole_sets(report.lab))
    for scenario in of_fast:
        (fast,) = numbers(number, scenario, systems=("FAST",))
        later = report.quantities(fast, cells.LATER)
        _show(report, number, scenario, later, name=cells.LATER.removeprefix(f"{AS_PRINTED}, "))
        _show(report, number, scenario, fast.at(set={"flow.cc": LARGE_ALPHA}), name="FAST's alpha 200 at every rate")


@cells.on_cells("table-8.1", "Aggregate goodput of two flows, 250 Mbit/s, 82 ms", choices=TABLE_CHOICES)
def table_8_1(report: Chapter) -> None:
    """Goodput in all four scenarios."""
    _compare(report, "8.1", cells.SYMMETRIC, cells.SMALL)
    for scenario in SCENARIOS:
        rows, changed = numbers("8.1", scenario, cells.goodput), "goodputs in units of 10^6 bit/s"
        _show(report, "8.1", scenario, *rows, name="in 10^6 bit/s", unit="Mbit/s", changed=changed)
    largest = max(value for one in SCENARIOS for value, _ in printed("li2006", "Table 8.1", "goodput", one).values())
    capacity_bit_s = 250e6 * cells.PAYLOAD
    report.notes.append(
        f"The largest goodput in print is {largest:g}. The payload capacity is {capacity_bit_s / 1e6:.1f} Mbit/s, and {capacity_bit_s / cells.MEBIBIT:.1f} in units of "
        "2^20 bit/s. So the table is read in these: flows that fill the link then have its payload capacity to the last digit. In units of 10^6 bit/s all of "
        "them would lack 4.6 % of it, whatever the algorithm and the buffer."
    )


@cells.on_cells("table-8.2", "Fairness and friendliness of two flows, 250 Mbit/s, 82 ms", choices=TABLE_CHOICES)
def table_8_2(report: Chapter) -> None:
    """Fairness in all four scenarios."""
    _compare(report, "8.2", cells.SYMMETRIC, cells.SMALL, cells.LARGE)
    for scenario in SCENARIOS:
        rows, time = numbers("8.2", scenario, partial(cells.fairness, of=cells.whole)), "over the whole measured time"
        _show(report, "8.2", scenario, *rows, name=time, changed=f"fairness {time}, instead of its second half")
    report.notes.append('Table 8.2 prints "-" for Scalable TCP with equal round-trip times, which cannot be compared.')
    grid = {
        "scenario buffer": ((cells.SMALL, "small buffer"), (cells.LARGE, "large buffer")),
        "a": ("Scalable TCP", "BicTCP"),
        "b": ("Standard TCP", "HighSpeed TCP", "H-TCP"),
        **TABLE_CELL,
    }
    report.claim(
        "L47",
        "Section 8.4.2, of different round-trip times: Scalable TCP and BicTCP, the best in goodput, are the worst in fairness.",
        "250 Mbit/s, 82 ms with small and large buffers, against the other loss-based algorithms. Only these columns of Tables 8.1 and 8.2: in the others "
        "BicTCP is fairer than Standard TCP in print (0.97 and 0.87), and friendlier than HighSpeed TCP (0.07 and 0.05)",
        "goodput less that of each other; fairness of each other less theirs",
        "no more than 1 % of the capacity below another, as several tie in print; 0: no difference",
        (
            Points("goodput of {a} over {b}, {buffer}", "goodput, less", above=-250 * cells.TIE).at(grid),
            Points("fairness of {b} over {a}, {buffer}", "fairness, second less first").at(grid),
        ),
        means="One of the two has less goodput than another algorithm, or is no less fair.",
        sets=("whole",),
    )


@cells.on_cells("table-8.3", "80 % convergence time, 250 Mbit/s, 82 ms", choices=TABLE_CHOICES)
def table_8_3(report: Chapter) -> None:
    """The convergence time of the second flow."""
    _compare(report, "8.3", cells.SYMMETRIC)
    fair = "the time until the second flow has 0.8 of a fair share, instead of its own average"
    median = "the median, instead of the mean that the thesis has, in which a time beyond the end counts as that until the end"
    for name, read, changed in (("medians", cells.converged, median), ("to a fair share", cells.shared, fair)):
        _show(report, "8.3", cells.SYMMETRIC, *numbers("8.3", cells.SYMMETRIC, read), name=name, changed=changed)
    report.claim(
        "L28",
        "Section 8.4.3, Table 8.3: two flows of Scalable TCP do not converge to fairness in ten minutes at 250 Mbit/s and 82 ms.",
        "that cell",
        "share of the runs in which the second flow reaches 0.8 of a fair share",
        "1/2: not in most runs (none of five in print)",
        Points("{system}", lambda run: cells.shared(run).seen, how="share", below=0.5).at(
            system="Scalable TCP", **TABLE_CELL
        ),
        means="Two flows of Scalable TCP do come to 0.8 of a fair share in most runs.",
        looks=cells.TIMES,
    )


@cells.on_cells("table-8.4", "Overhead, 250 Mbit/s, 82 ms", choices=TABLE_CHOICES)
def table_8_4(report: Chapter) -> None:
    """Overhead in all four scenarios, in both readings of the column."""
    _compare(report, "8.4", cells.SYMMETRIC, cells.SMALL)
    variants = {name: f"{PER_BIT}, and {changed}" for name, changed in cells.whole_sets(report.lab).items()}
    for scenario in SCENARIOS:
        rows, name = numbers("8.4", scenario, _per_bit), "bytes for each bit"
        _show(report, "8.4", scenario, *rows, name=name, changed=PER_BIT, variants=variants)
    others = [name for name in LOSS_BASED if name != "BicTCP"]
    report.claim(
        "L48",
        "Section 8.4.4: BicTCP has few losses, thanks to its plateau.",
        "250 Mbit/s, 82 ms, against the other loss-based New-TCP algorithms",
        "overhead of each other less that of BicTCP",
        "0: no difference",
        Points("{a} over {b}", "overhead, less").at(a=others, b="BicTCP", **TABLE_CELL),
        tried="The four sets of choices, and both readings of the overhead.",
        means="The thesis' own Table 8.4 prints 5.08 for BicTCP, 2.95 for HighSpeed TCP and 3.11 for H-TCP: the sentence contradicts it.",
        sets=("whole tests",),
    )


@cells.on_cells("sets", "Which set of unpublished choices fits most rows of Tables 8.1 to 8.4", choices=TABLE_CHOICES)
def which_set(report: Chapter) -> None:
    """Count the rows of the tables that agree under each set. No choice is made from this."""
    lab = report.lab
    fits: Counter[str] = Counter()
    for name in cells.sets(lab):
        within: Counter[str] = Counter()
        count: Counter[str] = Counter()
        for number, table in TABLES.items():
            for label, reader in ((number, None), *([table.other] if table.other else [])):
                for scenario in table.scenarios:
                    # Standard TCP beside itself is the symmetric cell again.
                    systems = NEW if scenario == cells.FRIENDLY else tuple(SYSTEMS)
                    asked = numbers(number, scenario, reader, systems)
                    rows = [row for one in asked for row in report.quantities(one, name)]
                    made = Report(lab).compare(table.metric, table.unit, rows, band=table.band, looks=table.looks)
                    within[label] += sum(row.agrees is True for row in made.rows)
                    count[label] += len(made.rows)
        tables = ", ".join(f"Table {label}: {within[label]} of {count[label]}" for label in count)
        defined = [label for label in count if label in TABLES]
        fits[name] = sum(within[label] for label in defined)
        report.notes.append(f"*{name}*: {fits[name]} of {sum(count[t] for t in defined)} rows agree ({tables}).")
    most = [f"*{name}*" for name in fits if fits[name] == max(fits.values())]
    report.notes.insert(0, f"The most rows agree under {' and '.join(most)}. No choice was made from this.")
