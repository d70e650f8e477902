"""Li 2006, Table B.2: the hosts of DataTAG, from the thesis' description of their processors and of the Linux 2.4 stack.

None of the values is fitted to a result. docs/hosts.md shows the effect of other values.
"""

from typing import Any

# Section 5.1.3 requires 1 GHz for 1 Gbit/s. So a packet and half an ACK take 12 us at 1 GHz and 12/2.2 us at
# 2.2 GHz, divided evenly: 3.6 + 3.6/2. Figure 9.18: an ACK with SACK blocks takes up to ten times as long as another one at
# 600 Mbit/s and 40 ms, where 3 blocks cause 3 walks over 2000 packets: 9 x 3.6 us / 6000 = 5.4 ns. The backlog is Kelly's on
# the same test bed (2003, section 4). Once it is full, Linux 2.4 accepts no packet until it is empty.
HOST: dict[str, Any] = {
    "data": "3.6 us",
    "ack": "3.6 us",
    "sack_in_flight": "5.4 ns",
    "max_backlog": 3000,
    "throttle": True,
}
# Linux 2.4: recovery by rate halving. The timeout is never shorter than the smoothed round-trip time plus 200 ms.
STACK: dict[str, Any] = {"window_reduction": "rate_halving", "rto_min": "320 ms"}
CHOICES = (
    "the hosts' processor: 3.6 us for a packet or an ACK (1 GHz for 1 Gbit/s, section 5.1.3), 5.4 ns for each packet that a SACK block "
    "makes Linux 2.4 traverse (ten times an ACK at 2000 packets, figure 9.18).",
    "the hosts' backlog, which the thesis does not print: Kelly's 3000 packets; once full, it accepts no packet until it is empty (Linux 2.4).",
)
