"""Errors that end a command with one line, in addition to `ScenarioError` for bad input."""


class FailedError(RuntimeError):
    """A valid request could not be carried out; the message says what was expected."""
