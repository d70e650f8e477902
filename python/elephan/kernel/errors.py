"""What goes wrong between Elephan and a kernel."""

from elephan.base.errors import FailedError


class KernelError(FailedError):
    """The kernel, or what is needed to speak to it, is not as it has to be; the message says what was expected."""
