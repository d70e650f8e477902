"""Run the notebooks of docs/notebooks, and write a page and a file for Jupyter of each into a copy of docs. Run by `make docs`.

A notebook's source is a Python file with cells (`# %%`): it is reviewed, formatted and linted as other code, and has no outputs
that change from version to version. jupytext reads it, Jupyter's own client runs it in an empty folder, and nbconvert makes its
page: `notebooks.py FOLDER`. With names after the folder, such as `first-steps`, only these are run.
"""

import os
import sys
import tempfile
import time
from pathlib import Path

import jupytext
import nbformat
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError
from nbconvert import MarkdownExporter

SOURCES = Path(__file__).parents[2] / "docs" / "notebooks"
# A cell that takes longer is an error, in s.
MOST_S = 300


def build(source: Path, built: Path) -> None:
    """Run one notebook, and write its page, its pictures and its file. Exits with the error of the cell that fails."""
    notebook = jupytext.read(source, fmt="py:percent")
    notebook.metadata["kernelspec"] = {"name": "python3", "display_name": "Python 3", "language": "python"}
    nbformat.write(notebook, built / f"{source.stem}.ipynb")
    with tempfile.TemporaryDirectory() as folder:
        client = NotebookClient(notebook, timeout=MOST_S, resources={"metadata": {"path": folder}})
        try:
            client.execute()
        except CellExecutionError as error:
            raise SystemExit(
                f"{source}: {error.ename}: {error.evalue}; the last lines of its cell:\n{error.traceback}"
            ) from error
    name = source.stem
    page, resources = MarkdownExporter().from_notebook_node(notebook, {"unique_key": name, "output_files_dir": name})
    head, _, rest = page.strip().partition("\n")
    link = f"[Download this notebook]({name}.ipynb) for Jupyter."
    (built / f"{name}.md").write_text(f"{head}\n\n{link}\n{rest}\n", encoding="utf-8")
    for path, data in resources["outputs"].items():
        picture = built / path
        picture.parent.mkdir(exist_ok=True)
        picture.write_bytes(data)


def main() -> None:
    """Build all notebooks, or those that are named."""
    folder, *names = sys.argv[1:]
    # A kernel is this Python, whatever else is installed on the machine.
    os.environ["JUPYTER_PREFER_ENV_PATH"] = "1"
    for source in sorted(SOURCES.glob("*.py")):
        if not names or source.stem in names:
            began = time.monotonic()
            build(source, Path(folder) / "notebooks")
            print(f"{source.name}: {time.monotonic() - began:.0f} s", flush=True)


if __name__ == "__main__":
    main()
