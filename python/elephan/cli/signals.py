"""Signal handling of the command line: Ctrl-C, SIGTERM from a batch system, SIGHUP at logout."""

import signal
import time
from types import FrameType

STOPPING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
# A sender that stops a process and then its group (`timeout` does) sends two signals for one request.
SAME_REQUEST_S = 0.05


class Stopped(KeyboardInterrupt):
    """A signal asked the process to stop. It is raised in the main thread, so that cleanup code runs.

    Code that has kept results adds a note. The exit code is 128 plus the signal number: 130 for Ctrl-C.
    """

    def __init__(self, number: int) -> None:
        super().__init__(signal.Signals(number).name)
        self.number = number


_stopped: Stopped | None = None


def stopped() -> Stopped | None:
    """The exception that was raised, if a signal came; its notes list what is kept."""
    return _stopped


def heed() -> None:
    """Install handlers: each of these signals raises `Stopped`, and a second one ends the process at once.

    A signal that was ignored when the process started (`nohup`) stays ignored.
    """
    for number in STOPPING:
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, _stop)


def _stop(number: int, _: FrameType | None) -> None:
    global _stopped  # noqa: PLW0603 - signals are the process's
    heeded = [each for each in STOPPING if signal.getsignal(each) is _stop]
    for each in heeded:
        signal.signal(each, signal.SIG_IGN)
    time.sleep(SAME_REQUEST_S)
    # The default action, because a Python handler would wait for the main thread.
    for each in heeded:
        signal.signal(each, signal.SIG_DFL)
    _stopped = Stopped(number)
    raise _stopped
