"""The MTU of the path: the longest packet that arrives unfragmented.

Packets have the don't-fragment flag, and what counts is whether they arrive: a router that drops long ones in silence (a black
hole) is found like any other. RFC 8899 probes in this way; ICMP is not needed.
"""

import numpy as np

from elephan.paths.estimates import Value, absent
from elephan.paths.probe.budget import Share
from elephan.paths.probe.session import Session

# Sizes that links have: the least of IPv4 and of IPv6, tunnels, Ethernet, FDDI, jumbo frames.
USUAL = (576, 1280, 1400, 1420, 1440, 1460, 1472, 1480, 1492, 1500, 2000, 4352, 8192, 9000)
# Sizes of virtual links, tried if all usual ones arrive.
LARGE = (16_384, 32_768, 65_535)
# More than any packet of IP has.
NONE_FAILED = 65_536
# Packets of each size: with a loss of 5 %, all are lost once in 160,000 sizes.
TRIES = 4
GAP_S = 2e-3
# What the tests are made with if the MTU is not known.
ASSUMED = 1280


def measure(session: Session, share: Share) -> tuple[int, Value, list[str]]:
    """The largest packet that the other tests may use, the figure, and notes."""
    before = session.client.spent()
    passed, failed = 0, NONE_FAILED
    sizes = [size for size in USUAL if size >= session.least_size]
    local = confirmed = again = False
    while sizes:
        # All sizes in turn, so that an outage of some milliseconds does not hit every packet of one size.
        wanted = np.tile(sizes, TRIES)
        if session.client.spent() - before + int(wanted.sum()) > share.bytes:
            confirmed = False
            break
        seen = session.stream("mtu", wanted, np.full(len(wanted), GAP_S))
        there = {int(size) for size in seen.sizes[seen.has_arrived]}
        passed = max([passed, *there])
        if passed == 0 and not again:
            # An outage hits all packets of one size, if it is the only one that passes.
            again = True
            continue
        if passed >= failed:
            # What failed before arrives now: it was lost for another reason, and the search goes on above it.
            failed, confirmed = NONE_FAILED, False
        above = [size for size in sizes if size not in there and passed < size < failed]
        if above:
            failed = min(above)
            # Whether it even left this host.
            local = not seen.was_sent[seen.sizes == failed].any()
        if passed == 0 or confirmed:
            break
        if failed == NONE_FAILED:
            sizes = [size for size in (USUAL if passed < USUAL[-1] else LARGE) if size > passed]
        elif failed - passed > 1:
            # Seven sizes at a time find one of 8 parts: fewer round-trip times than halves, and few bytes.
            sizes = sorted({passed + (failed - passed) * k // 8 for k in range(1, 8)} - {passed, failed})
            sizes = sizes or list(range(passed + 1, failed))
        else:
            sizes, confirmed = [passed, failed], True
    cost = session.cost.get("mtu", 0)
    if cost == 0:
        return ASSUMED, absent("B", f"its share of the budget, {share.bytes} B, is too small"), []
    if passed == 0:
        return (
            ASSUMED,
            absent("B", "no packet of any size arrived"),
            ["no datagram arrived: is UDP blocked on the path?"],
        )
    method = f"longest of {TRIES} packets each that arrived unfragmented"
    value = Value(unit="B", value=passed, low=passed, high=failed - 1, method=method, cost_bytes=cost)
    notes = []
    if confirmed and not local:
        notes.append(
            f"packets longer than {passed} bytes leave this host and do not arrive: TCP finds this only by ICMP, or by"
            " probes of its own (net.ipv4.tcp_mtu_probing)"
        )
    return passed, value, notes
