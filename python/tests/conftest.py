"""What several files of tests need."""

import os
import signal
from pathlib import Path

import hypothesis
import pytest

from elephan.foreign import modules
from elephan.guest import image
from elephan.guest.image import INIT, LINKS
from elephan.kernel import KernelError, missing

# The fixture `deviation`, and the report of `make realtime`.
pytest_plugins = ["realtime"]

# The gate draws the same cases each time, `make slow` others (`--hypothesis-profile fresh`); a failure prints how to repeat it.
hypothesis.settings.register_profile("gate", derandomize=True, deadline=None, database=None)
hypothesis.settings.register_profile("fresh", deadline=None, database=None, print_blob=True)
hypothesis.settings.load_profile("gate")


@pytest.fixture(scope="session", autouse=True)
def stoppable():
    """Processes that a test starts get the signals that `nohup`, or a shell in the background, made this one ignore."""
    default = {signal.SIGINT: signal.default_int_handler, signal.SIGQUIT: signal.SIG_DFL, signal.SIGHUP: signal.SIG_DFL}
    for number, handler in default.items():
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


@pytest.fixture
def machine():
    """Skips a test where the running kernel cannot be an engine."""
    if lacks := missing():
        pytest.skip("; ".join(lacks))


@pytest.fixture
def root():
    """Skips a test where no namespace can be made."""
    if os.geteuid() != 0 or not Path("/dev/net/tun").exists():
        pytest.skip("expected root and /dev/net/tun, found neither")


@pytest.fixture(scope="session")
def tree():
    """The source of Linux 6.1, imported once for this user."""
    package = Path("/usr/src/linux-source-6.1.tar.xz")
    if not package.is_file():
        pytest.skip(f"{package}: expected Debian's package linux-source-6.1, found nothing")
    before = [one for one in modules.trees() if one.source == str(package)]
    return before[0] if before else modules.import_tree(package)
