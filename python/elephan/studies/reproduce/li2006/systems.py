"""Shared by the chapters of the thesis: its algorithms, the sets of choices that it leaves open, its numbers, and its own metric."""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from elephan.api.metrics import declared
from elephan.studies.reproduce.lab import number

published = partial(number, "li2006")

# The thesis' names of algorithms, and their names in a scenario. The thesis used HighSpeed TCP with the table of RFC 3649,
# and H-TCP with an increase that is multiplied by T_min in seconds, as its equation 6.9 prints.
SYSTEMS = {
    "Standard TCP": "reno",
    "HighSpeed TCP": '{ name = "hstcp", response = "table" }',
    "Scalable TCP": "scalable",
    "H-TCP": '{ name = "htcp", rtt_scaling = "seconds" }',
    "BicTCP": "bic",
    "FAST": "fast",
}
NEW = tuple(SYSTEMS)[1:]
LOSS_BASED = tuple(name for name in NEW if name != "FAST")
OVERHEAD = declared("Summary", "overhead_s_bit")


@dataclass(frozen=True)
class ChoiceSet:
    """Choices that the thesis does not publish, and that belong together: `cc` for each algorithm, and keys of the stack.

    `own` is what the flows of an algorithm have of their own in the stack.
    """

    cc: Mapping[str, str]
    tcp: Mapping[str, str]
    source: str
    own: Mapping[str, str] = field(default_factory=dict)

    def settings(self, system: str, flow: str = "flow") -> dict[str, str]:
        """The keys of a scenario for an algorithm in all flows, or in one, `flow.1`."""
        own = {f"{flow}.tcp": self.own[system]} if system in self.own else {}
        return {f"{flow}.cc": self.cc[system], **own, **self.tcp}


_CODE = SYSTEMS | {
    "HighSpeed TCP": '{ name = "hstcp", form = "linux" }',
    "H-TCP": '{ name = "htcp", rtt_scaling = "reference" }',
    "BicTCP": '{ name = "bic", s_max = 16 }',
}
_PER_ACK = {"tcp.byte_counting": '"per_ack"'}
AS_PRINTED = "as printed"
SETS = {
    AS_PRINTED: ChoiceSet(
        SYSTEMS,
        {},
        "Li 2006: byte counting (section 8.1.2), H-TCP's increase times T_min in seconds (equation 6.9), RFC 3649's table with a "
        "window in the row below it (section 8.3.1); Xu 2004: S_max 32",
    ),
    "as printed, ACK counting": ChoiceSet(
        SYSTEMS, _PER_ACK, "the same, but an ACK counts one segment, as in the kernel below the patch (Linux 2.6.6)"
    ),
    "authors' code": ChoiceSet(
        _CODE,
        {},
        "byte counting (section 8.1.2); the algorithms' Linux code: H-TCP's increase times T_min/100 ms (tcp_htcp.c), S_max 16 "
        "(tcp_bic.c), a window in the row of HighSpeed TCP's table above it (tcp_highspeed.c, which counts ACKs: in place of byte counting "
        "its receivers send an ACK for each segment, against section 8.1.3, so its bursts are smaller too)",
        own={"HighSpeed TCP": "{ delayed_ack = { segments = 1 } }"},
    ),
    "authors' code, ACK counting": ChoiceSet(
        _CODE, _PER_ACK, "the same, but an ACK counts one segment for every algorithm"
    ),
}


def cc_of(system: str, chosen: str = AS_PRINTED) -> Any:
    """The value of `cc` in a scenario for an algorithm of the thesis, under a set of choices."""
    text = SETS[chosen].cc[system]
    return tomllib.loads(f"cc = {text}")["cc"] if text.startswith("{") else text
