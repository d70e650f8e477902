"""What stands in the cells of tables, on the terminal and in reports."""

from elephan.summary import LinkSummary


def number(value: float | None, factor: float = 1, digits: int = 2) -> str:
    """A number in another unit; `-` where it is undefined."""
    return "-" if value is None else f"{value * factor:.{digits}f}"


def percent(part: int, whole: int) -> str:
    """A share in %; `-` of nothing."""
    return number(part / whole if whole else None, 100, 3)


def drops(link: LinkSummary) -> str:
    """How many packets a link dropped, and why, where that was not all for want of room."""
    reasons = {
        "full": link.dropped_full,
        "early": link.dropped_early,
        "policed": link.dropped_policed,
        "down": link.dropped_down,
    }
    told = [f"{count} {reason}" for reason, count in reasons.items() if count]
    return str(link.dropped) if link.dropped == link.dropped_full else f"{link.dropped}: {', '.join(told)}"
