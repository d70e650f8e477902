"""The TCP connections of any program, read from the kernel (sock_diag) and recorded as a run.

A connection is a flow of that run. Its label has the remote address and port, and the local port in brackets.
"""

import os
import re
import signal
import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from types import FrameType

import numpy as np

from elephan import _core
from elephan.api.run import Run
from elephan.api.scenario import flow
from elephan.base.numbers import number
from elephan.base.table import Head, Table, text_heads
from elephan.base.text import visible
from elephan.paths.transfer import named, recorded

INTERVAL_S, LEAST_S = 0.1, 1e-3
# Exit codes of a shell that cannot start a program.
NOT_FOUND, NOT_EXECUTABLE = 127, 126
# Signals to this process that are sent on to the program.
FORWARDED = (signal.SIGINT, signal.SIGQUIT, signal.SIGTERM, signal.SIGHUP)
# Time between looks at the program where the watch has failed.
WAIT_S = 0.05
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
    - `run`: its connections, as any run; None if there was none, and where there is a `problem`;
    - `received`: bytes that each flow of the run received;
    - `connections`: the number of connections that were seen. The run has at most 1000: a further one takes the place of the
      one that has ended and sent least, and is left out while none has ended;
    - `without_info`: connections without `TCP_INFO`;
    - `foreign`: processes of other users, whose connections cannot be seen;
    - `problem`: why connections that were seen are no run.
    """

    code: int
    run: Run | None
    received: tuple[int, ...]
    connections: int
    without_info: int
    foreign: int
    problem: str | None


def watch(command: Sequence[str], *, interval_s: float = INTERVAL_S) -> Watched:
    """Run a program, and record the TCP connections of it and of the programs that it starts.

    Samples are kept every `interval_s` seconds, at least a millisecond. The program has the input and outputs of this process,
    and is sent SIGINT, SIGQUIT, SIGTERM and SIGHUP. Only the main thread may call this. Raises `ScenarioError` for another
    interval, `NotStartedError`, and `OSError` where the kernel has no sock_diag.
    """
    if not interval_s >= LEAST_S:
        raise _core.ScenarioError(f"interval_s: expected {LEAST_S:g} s or more, found {interval_s:g}")
    program = _Program(command)
    started = time.perf_counter()
    with ExitStack() as after:
        for number in FORWARDED:
            before = signal.getsignal(number)
            # One that is ignored (`nohup`) is so for the program too; one that is not Python's cannot be restored.
            if before not in (signal.SIG_IGN, None):
                after.callback(signal.signal, number, before)
                signal.signal(number, program.take)
        after.callback(program.wait)
        found = _core.watch_programs(interval_s, program.start, program.is_over)
    run, problem, tables = None, None, found["tables"]
    if tables is not None:
        ends = zip(found["flows"], tables["labels"], strict=True)
        flows = [flow(named(cc), label=label, start=f"{start:.9f} s") for (cc, start, _), label in ends]
        try:
            run = recorded(tables, flows, None, time.perf_counter() - started, visible(Path(command[0]).name))
        except _core.ScenarioError as error:
            problem = str(error)
    received = tuple(received for *_, received in found["flows"])
    counts = (found["connections"], found["without_info"], found["foreign"])
    return Watched(program.code, run, received, *counts, problem)


class _Program:
    def __init__(self, command: Sequence[str]) -> None:
        self._command = list(command)
        self._process: int | None = None
        # Signals to this process, by any of its threads; Python's main thread takes them.
        self._sent: list[int] = []
        self._witness = _Witness()
        self.code = 0

    def take(self, number: int, _: FrameType | None) -> None:
        """Handle a signal: keep it until it is sent on."""
        self._sent.append(number)

    def start(self) -> None:
        try:
            self._process = os.posix_spawnp(
                self._command[0], self._command, os.environ, setsigmask=(), setsigdef=IGNORED
            )
        except OSError as error:
            raise NotStartedError(self._command[0], error) from error

    def is_over(self) -> bool:
        """Send signals on; return whether the program is over."""
        if self._process is None:
            return True
        if self._sent:
            sent, self._sent = self._sent, []
            seen = self._witness.seen() if os.getpgid(self._process) == os.getpgrp() else set()
            for number in sent:
                if number not in seen:
                    os.kill(self._process, number)
        process, status = os.waitpid(self._process, os.WNOHANG)
        if process:
            code = os.waitstatus_to_exitcode(status)
            self.code, self._process = code if code >= 0 else 128 - code, None
        return self._process is None

    def wait(self) -> None:
        """Wait until it is over, and send signals on."""
        while not self.is_over():
            time.sleep(WAIT_S)
        self._witness.close()


class _Witness:
    """A process in the group of this one for which signals wait: those were sent to all of the group, as a terminal does."""

    def __init__(self) -> None:
        self._begin()

    def _begin(self) -> None:
        its, self._end = os.pipe()
        stdin = (os.POSIX_SPAWN_DUP2, its, 0)
        self._process = os.posix_spawnp("cat", ["cat"], os.environ, file_actions=[stdin], setsigmask=FORWARDED)
        os.close(its)

    def seen(self) -> set[int]:
        """The signals to the group since the last call."""
        status = Path(f"/proc/{self._process}/status").read_text(encoding="utf-8")
        waiting = int(status.partition("ShdPnd:")[2].split()[0], 16)
        if waiting:
            self.close()
            self._begin()
        return {number for number in FORWARDED if waiting >> (number - 1) & 1}

    def close(self) -> None:
        os.close(self._end)
        os.waitpid(self._process, 0)


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
        srtt_s = frame.filter((frame["flow"] == one) & frame["srtt_s"].is_not_null())["srtt_s"].to_numpy()
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
