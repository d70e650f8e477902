"""Run others' packetdrill scripts on the simulator and on a guest kernel, and count why scripts are skipped.

`python scripts/packetdrill.py Google=packetdrill/gtests/net` prints two tables in Markdown, and on the error stream a line for
each script that passes on the kernel and fails on the simulator. It needs an image (`elephan kernel build`).
"""

import re
import sys
from collections import Counter
from pathlib import Path

from elephan.base.table import Head, Table, text_heads
from elephan.engines.packetdrill import Report, kernel, run

# Linux's choices are what these scripts mostly expect.
SETTINGS = {"tcp.profile": "linux-6"}
# What scripts ask for, and the reasons that name it; the first that fits counts.
REASONS = {
    "TCP Fast Open": r"FAST_?OPEN|Fast Open|fastopen|tcp_ts_ecr_scaled",
    "zero copy, sendfile, splice": r"ZEROCOPY|/bin/dd|IP_FREEBIND",
    "encryption by PSP": r"psp_",
    "TCP_NOTSENT_LOWAT, poll, epoll, sendmsg": r"NOTSENT_LOWAT|poll|sendmsg",
    "time stamps of packets, UDP": r"TIMESTAMPING|UDP",
    "tc with fq or a limit, ip route ... mtu": r"tc qdisc|ip route",
    "MSG_EOR, TCP_CORK": r"MSG_EOR|TCP_CORK",
    "TCP_INQ": r"TCP_INQ",
    "ICMP, IPv6": r"icmp|ipv6",
}


def reason(report: Report) -> str:
    """What a skipped script asks for."""
    return next((name for name, pattern in REASONS.items() if re.search(pattern, report.reason)), "others")


def main() -> None:
    """Run the scripts of each NAME=FOLDER."""
    guest = kernel()
    results: dict[str, dict[str, list[Report]]] = {}
    for word in sys.argv[1:]:
        name, _, folder = word.partition("=")
        files = sorted(Path(folder).rglob("*.pkt"))
        results[name] = {
            "simulator": [run(file, SETTINGS) for file in files],
            f"Linux {guest.version}": [run(file, guest=guest) for file in files],
        }
    outcomes = ("passed", "failed", "skipped")
    counts = Table("", [*text_heads("scripts of", "stack"), *(Head(one) for one in outcomes)], [])
    skipped: dict[str, Counter[str]] = {}
    for name, stacks in results.items():
        for stack, reports in stacks.items():
            count = Counter(report.outcome for report in reports)
            counts.rows.append([name, stack, *(count[one] for one in outcomes)])
            skipped.setdefault(stack, Counter()).update(reason(one) for one in reports if one.outcome == "skipped")
        simulated, real = stacks.values()
        for ours, theirs in zip(simulated, real, strict=True):
            if ours.outcome == "failed" and theirs.outcome == "passed":
                print(f"{ours.file}:{ours.line}: expected {ours.expected}, seen {ours.seen}", file=sys.stderr)
    why = Table("", [*text_heads("skipped for"), *(Head(stack) for stack in skipped)], [])
    for name in [*REASONS, "others"]:
        why.rows.append([name, *(count[name] for count in skipped.values())])
    print(f"{counts.to_markdown()}\n{why.to_markdown()}", end="")


if __name__ == "__main__":
    main()
