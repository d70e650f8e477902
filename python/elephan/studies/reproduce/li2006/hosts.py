"""Li 2006, Table B.2: the hosts of DataTAG, by what the thesis says of their processors, and Linux 2.4 of its stack.

None of it is fitted to a result; docs/hosts.md shows what other values do.
"""

from typing import Any

# Section 5.1.3: 1 GHz for 1 Gbit/s, so of 12 us for a packet and half an ACK 12/2.2 at 2.2 GHz, divided evenly: 3.6 + 3.6/2. Figure 9.18: an
# ACK with SACK blocks takes up to ten times as long as another at 600 Mbit/s and 40 ms, where 3 blocks mean 3 walks over 2000
# packets: 9 x 3.6 us / 6000 = 5.4 ns. The backlog is Kelly's on the same test bed (2003, section 4); Linux 2.4 takes no packet in
# between its being full and its being empty.
HOST: dict[str, Any] = {
    "data": "3.6 us",
    "ack": "3.6 us",
    "sack_in_flight": "5.4 ns",
    "max_backlog": 3000,
    "throttle": True,
}
# Linux 2.4: recovery by rate halving; the timeout is never below the smoothed round-trip time and 200 ms.
STACK: dict[str, Any] = {"rate_halving": True, "rto_min": "320 ms"}
CHOICES = (
    "the hosts' processor: 3.6 us for a packet or an ACK (1 GHz for 1 Gbit/s, section 5.1.3), 5.4 ns for each packet that a SACK block "
    "makes Linux 2.4 walk over (ten times an ACK at 2000 packets, figure 9.18).",
    "the hosts' backlog, which the thesis does not print: Kelly's 3000 packets; once full it takes nothing until it is empty (Linux 2.4).",
)
