"""What several files of tests need."""

import signal
import time
from pathlib import Path

import hypothesis
import pytest

from elephan.engines.kernel import INIT, LINKS
from elephan.kernel import KernelError, image

# The gate draws the same cases each time. `make slow` draws afresh (`--hypothesis-profile fresh`); a failure prints how to repeat it.
hypothesis.settings.register_profile("gate", derandomize=True, deadline=None, database=None)
hypothesis.settings.register_profile("fresh", deadline=None, database=None, print_blob=True)
hypothesis.settings.load_profile("gate")

# Of the processors' time; the emulator of links holds one of two processors, its programs the other.
STOLEN_SHARE = 0.1
ATTEMPTS = 3
# No attempt begins after this time.
PATIENCE_S = 15.0


@pytest.fixture(scope="session", autouse=True)
def stoppable():
    """Processes that a test starts get the signals that `nohup`, or a shell in the background, made this one ignore."""
    for number, handler in ((signal.SIGINT, signal.default_int_handler), (signal.SIGHUP, signal.SIG_DFL)):
        if signal.getsignal(number) is signal.SIG_IGN:
            signal.signal(number, handler)


@pytest.fixture
def guest():
    """Skips a test where no kernel can be run as a process."""
    try:
        image.find()
    except KernelError as error:
        pytest.skip(str(error))
    if not (INIT.is_file() and LINKS.is_file()):
        pytest.skip(f"{INIT.parent}: expected what runs in a guest, found nothing; `make guest` builds it")


def stolen_and_passed():
    """Processor time since the start of the machine: taken by the host for others (`steal` in proc(5)), and in all."""
    ticks = [int(word) for word in Path("/proc/stat").read_text().split()[1:9]]
    return ticks[7], sum(ticks)


@pytest.fixture
def undisturbed(request):
    """`undisturbed(attempt)` returns the result of an attempt in real time that the machine and its host left alone.

    A disturbed attempt is repeated, twice or for a quarter of a minute. If all are disturbed nothing can be said, and the test
    is skipped. `qualities` returns how well the links of a result kept to their schedule; a result is a run unless it is given.
    """

    def repeated(attempt, qualities=lambda run: [run.provenance["quality"]]):
        began = time.monotonic()
        for _ in range(ATTEMPTS):
            before = stolen_and_passed()
            found = attempt()
            stolen, passed = (now - then for now, then in zip(stolen_and_passed(), before, strict=True))
            share = stolen / max(passed, 1)
            reasons = [reason for quality in qualities(found) for reason in quality["invalid_because"]]
            if share > STOLEN_SHARE:
                reasons.append(f"the host took {share:.0%} of the processors' time")
            if not reasons:
                return found
            if time.monotonic() - began > PATIENCE_S:
                break
        told = "; ".join(dict.fromkeys(reasons))
        pytest.skip(f"{request.node.name} is undecided: the machine was too busy each time; {told}")

    return repeated
