"""`elephan cite`."""

import re
from pathlib import Path

from elephan.base.text import latex
from elephan.cli.options import command_line
from elephan.cli.output import out

# A link to the file of the repository, which a wheel has as a file.
CITATION = Path(__file__).parents[1] / "CITATION.cff"

app = command_line()


@app.command()
def cite() -> None:
    """Print the BibTeX entry of this version of Elephan, for results.

    The source of an algorithm or of a queue discipline is in `elephan cc show NAME` and `elephan queue show NAME`.
    """
    text = CITATION.read_text(encoding="utf-8")
    # Each of these keys has its value on its line.
    told = dict(re.findall(r'^([\w-]+): "?(.*?)"?$', text, re.MULTILINE))
    authors = re.findall(r"^  - name: (.*)$", text, re.MULTILINE)
    fields = {
        "author": " and ".join(f"{{{latex(author)}}}" for author in authors),
        "title": latex(told["title"]),
        "version": told["version"],
        "year": told["date-released"][:4],
        "url": told["repository-code"],
    }
    lines = [f"  {key} = {{{value}}}," for key, value in fields.items()]
    out.message("\n".join(["@software{elephan,", *lines, "}"]))
