"""Reports: what came of a run, a comparison, a sweep or a reproduction, as one file to hand round.

`content` is what a report says, `read` reads it from a results folder, `series` thins samples, `write` makes the
file. The web app shows the same content.
"""

from elephan.report.content import Content
from elephan.report.read import kind_of, read, read_beside
from elephan.report.write import FORMATS, write

__all__ = ["FORMATS", "Content", "kind_of", "read", "read_beside", "write"]
