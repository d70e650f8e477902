"""Errors between Elephan and a kernel."""

from elephan.base.errors import FailedError


class KernelError(FailedError):
    """The kernel, or software needed to access it, does not meet a requirement; the message says what was expected."""
