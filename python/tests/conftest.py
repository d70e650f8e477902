"""What several files of tests need."""

import pytest

from elephan.engines.kernel import INIT, LINKS
from elephan.kernel import KernelError, image


@pytest.fixture
def guest():
    """Skips a test where no kernel can be run as a process."""
    try:
        image.find()
    except KernelError as error:
        pytest.skip(str(error))
    if not (INIT.is_file() and LINKS.is_file()):
        pytest.skip(f"{INIT.parent}: expected what runs in a guest, found nothing; `make guest` builds it")
