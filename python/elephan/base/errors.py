"""What a command ends with in one line, beside `ScenarioError` for bad input."""


class FailedError(RuntimeError):
    """What was asked for is in order, and could not be done; the message says what was expected."""
