"""The TCP connections of any program, read from the kernel (sock_diag) and recorded as a run.

A connection is a flow of that run. Its label has the remote address and port, and the local port in brackets.
"""

import os
import re
import signal
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from platform import release

import numpy as np

from elephan import _core
from elephan.api.run import Run
from elephan.api.scenario import flow
from elephan.base.numbers import number
from elephan.base.table import Head, Table, text_heads
from elephan.base.text import visible
from elephan.engines.linux import from_columns
from elephan.paths.transfer import described, named

INTERVAL_S, LEAST_S = 0.1, 1e-3
# Exit codes of a shell that cannot start a program.
NOT_FOUND, NOT_EXECUTABLE = 127, 126
# Signals to this process are sent on to the program, except those of the terminal, which sends them to both: `SI_KERNEL` of
# asm-generic/siginfo.h.
FORWARDED = (signal.SIGINT, signal.SIGQUIT, signal.SIGTERM, signal.SIGHUP)
BY_TERMINAL = 0x80
# Python ignores these signals, and a program would inherit that.
IGNORED = (signal.SIGPIPE, signal.SIGXFSZ)
MOST_ROWS = 20
LABEL = re.compile(r"(.+):\d+ \(\d+\)")


class NotStartedError(OSError):
    """A program could not be started; `code` is the exit code of a shell."""

    def __init__(self, command: str, error: OSError) -> None:
        found = isinstance(error, FileNotFoundError)
        super().__init__(f"{visible(command)}: expected a program, found {'none' if found else error.strerror}")
        self.code = NOT_FOUND if found else NOT_EXECUTABLE


@dataclass(frozen=True)
class Watched:
    """What a program did.

    - `code`: its exit code; 128 and the signal's number where a signal ended it;
    - `run`: its connections, as any run; None if there was none;
    - `received`: bytes that each flow of the run received;
    - `connections`: the number of connections, of which the run has at most 1000, those that delivered most;
    - `without_info`: connections without `TCP_INFO`;
    - `foreign`: processes of other users, whose connections cannot be seen.
    """

    code: int
    run: Run | None
    received: tuple[int, ...]
    connections: int
    without_info: int
    foreign: int


def watch(command: Sequence[str], *, interval_s: float = INTERVAL_S) -> Watched:
    """Run a program, and record the TCP connections of it and of the programs that it starts.

    Samples are kept every `interval_s` seconds, at least a millisecond. The program has the input and outputs of this process,
    and is sent the signals that would end it. Only the main thread may call this. Raises `NotStartedError`, and `OSError` where
    the kernel has no sock_diag.
    """
    program = _Program(command)
    started = time.perf_counter()
    before = signal.pthread_sigmask(signal.SIG_BLOCK, FORWARDED)
    try:
        found = _core.watch_programs(interval_s, lambda: program.start({*map(int, before)}), program.is_over)
    finally:
        program.wait()
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
    run, tables = None, found["tables"]
    if tables is not None:
        ends = zip(found["flows"], tables["labels"], strict=True)
        flows = [flow(named(cc), label=label, start=f"{start:.9f} s") for (cc, start, _), label in ends]
        scenario = described(tables, flows, None, visible(Path(command[0]).name))
        run = from_columns(scenario, tables, "transfer", release(), time.perf_counter() - started)
    received = tuple(received for *_, received in found["flows"])
    return Watched(program.code, run, received, found["connections"], found["without_info"], found["foreign"])


class _Program:
    def __init__(self, command: Sequence[str]) -> None:
        self._command = list(command)
        self._process: int | None = None
        self.code = 0

    def start(self, mask: set[int]) -> None:
        try:
            self._process = os.posix_spawnp(
                self._command[0], self._command, os.environ, setsigmask=mask, setsigdef=IGNORED
            )
        except OSError as error:
            raise NotStartedError(self._command[0], error) from error

    def is_over(self) -> bool:
        """Send signals on; return whether the program is over."""
        while (sent := signal.sigtimedwait(FORWARDED, 0)) is not None:
            if self._process is not None and sent.si_code != BY_TERMINAL:
                os.kill(self._process, sent.si_signo)
        self._reap(os.WNOHANG)
        return self._process is None

    def wait(self) -> None:
        """Wait until it is over."""
        self._reap(0)

    def _reap(self, options: int) -> None:
        if self._process is not None:
            process, status = os.waitpid(self._process, options)
            if process:
                code = os.waitstatus_to_exitcode(status)
                self.code, self._process = code if code >= 0 else 128 - code, None


def peer(label: str) -> str:
    """The remote address of a connection, by the label of its flow; empty for a flow of another kind."""
    found = LABEL.fullmatch(label)
    return found[1] if found else ""


def of_connections(seen: Watched) -> Table:
    """The connections, those first that delivered most."""
    heads = [
        *text_heads("connection", "cc"), Head("sent", "MB"), Head("received", "MB"), Head("duration", "s"),
        Head("goodput", "Mbit/s"), Head("retransmitted", "%"), Head("srtt min", "ms"), Head("srtt median", "ms"),
    ]  # fmt: skip
    if seen.run is None:
        return Table("", heads, [])
    run, rows = seen.run, []
    frame, moved = run.flows, run.transfers
    took_s = (moved["end_s"] - moved["start_s"]).to_numpy()
    sent = moved["bytes"].to_numpy()
    for one in np.argsort(-(sent + np.array(seen.received)), kind="stable")[:MOST_ROWS]:
        srtt_s = frame.filter((frame["flow"] == one) & (frame["srtt_s"] > 0))["srtt_s"].to_numpy()
        summary = run.summary.flows[one]
        again = summary.retransmitted_bytes / summary.sent_bytes if summary.sent_bytes else 0.0
        rows.append(
            [
                run.labels[one],
                str(run.scenario.document["flow"][one]["cc"]),
                number(sent[one], 1e-6, 3),
                number(seen.received[one], 1e-6, 3),
                number(took_s[one], 1, 2),
                number(8 * max(sent[one], seen.received[one]) / took_s[one] if took_s[one] else None, 1e-6, 1),
                number(again, 100, 3),
                number(srtt_s.min() if len(srtt_s) else None, 1e3, 3),
                number(np.median(srtt_s) if len(srtt_s) else None, 1e3, 3),
            ]
        )
    return Table("", heads, rows, "sent: bytes that were acknowledged; goodput: of the direction with more bytes")
