"""Count the instructions of a delivered segment in some cases of the benchmark: `make instructions`.

Valgrind counts instructions, not seconds, so the count is the same on a busy machine. More than 2 % above the number of
instructions.toml fails; so does more than 2 % below, because the file then no longer says what a segment costs. `--write`
writes today's counts.
"""

import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

RECORD = Path(__file__).with_suffix(".toml")
BENCH = Path("target/checkout/examples/bench")
# Cases of the benchmark, and the simulated seconds from which and to which segments count.
CASES = {
    "one hop": (0, 5, 12),
    "one hop, slow start": (0, 0, 5),
    "three hops": (2, 5, 12),
    "two HSTCP flows": (3, 8, 20),
    "two Reno flows": (4, 10, 20),
    "two Reno flows, three hops": (5, 10, 20),
    "100 Reno flows": (6, 2, 4),
    "100 Reno flows, later": (6, 4, 6),
}
TOLERANCE = 0.02


def totals(case: int, seconds: int) -> tuple[int, float]:
    """The instructions of a run, and its delivered segments."""
    if seconds == 0:
        return 0, 0.0
    command = ["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null", BENCH]
    done = subprocess.run(
        [*command, "--case", str(case), "--seconds", str(seconds)], capture_output=True, text=True, check=True
    )
    (instructions,) = re.findall(r"Collected : (\d+)", done.stderr)
    return int(instructions), float(done.stdout.split()[0])


def count(case: int, begin: int, end: int) -> float:
    """The instructions of a segment that is delivered between two times of a run, s."""
    (before, earlier), (after, later) = totals(case, begin), totals(case, end)
    return (after - before) / (later - earlier)


def main() -> None:
    """Count, compare, and exit with 1 if a count differs."""
    if shutil.which("valgrind") is None:
        sys.exit("valgrind: not installed; on Debian, `apt-get install valgrind`")
    counts = {name: round(count(*case)) for name, case in CASES.items()}
    if "--write" in sys.argv:
        RECORD.write_text(
            "# Instructions of a delivered segment; `scripts/instructions.py --write` writes this.\n"
            + "".join(f'"{name}" = {instructions}\n' for name, instructions in counts.items()),
            encoding="utf-8",
        )
    record = tomllib.loads(RECORD.read_text(encoding="utf-8"))
    failed = False
    for name, instructions in counts.items():
        change = instructions / record[name] - 1
        differs = abs(change) > TOLERANCE
        failed |= differs
        print(f"{name}: {instructions} instructions a segment, {record[name]} on record{f': {change:+.1%}' * differs}")
    sys.exit(failed)


if __name__ == "__main__":
    main()
