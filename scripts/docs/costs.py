"""Write what each published experiment costs by its last reports: costs.csv, from which `elephan reproduce` states its time.

python scripts/docs/costs.py results/reproduce
"""

import csv
import sys
from pathlib import Path

from elephan.studies.reproduce.catalogue import EXPERIMENTS
from elephan.studies.reproduce.lab import SCENARIOS
from elephan.studies.reproduce.stored import read_reports


def main(folder: Path) -> None:
    """Write the processor time of the runs of each experiment, in full and with `--quick`, in s."""
    full, quick = read_reports(folder, quick=False), read_reports(folder, quick=True)
    place = SCENARIOS / "costs.csv"
    with place.open(encoding="utf-8", newline="") as file:
        known = {row["experiment"]: row for row in csv.DictReader(file)}
    for column, reports in (("full_s", full), ("quick_s", quick)):
        for name, report in reports.items():
            known.setdefault(name, {"experiment": name, "full_s": "0", "quick_s": "0"})[column] = (
                f"{report['cost_s']:.0f}"
            )
    with place.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, ["experiment", "full_s", "quick_s"], lineterminator="\n")
        writer.writeheader()
        writer.writerows(known[name] for name in EXPERIMENTS if name in known)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
