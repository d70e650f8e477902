"""What the command line does when it is asked to stop: by Ctrl-C, by a batch system (SIGTERM), at a logout (SIGHUP)."""

import signal
import time
from types import FrameType

STOPPING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
# Who stops a process and then its whole group (`timeout` does) sends two signals, and means one.
SAME_REQUEST_S = 0.05


class Stopped(KeyboardInterrupt):
    """A signal asked the process to stop. Raised in the main thread, so that everything is cleaned up on the way out.

    Whoever has kept something adds a note that says what. The exit code is 128 and the number: 130 for Ctrl-C.
    """

    def __init__(self, number: int) -> None:
        super().__init__(signal.Signals(number).name)
        self.number = number


_stopped: Stopped | None = None


def stopped() -> Stopped | None:
    """What was raised, if a signal came; its notes say what is kept."""
    return _stopped


def heed() -> None:
    """From now on each of these signals raises `Stopped`, and a second one ends the process at once.

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
    # Not a handler of Python's, which would wait for the main thread.
    for each in heeded:
        signal.signal(each, signal.SIG_DFL)
    _stopped = Stopped(number)
    raise _stopped
