"""Build the pages of reproduced experiments from their archive: the page of each source, and the pictures that need no runs.

python scripts/docs/verdicts.py FOLDER, with the folder of the documentation, in which reproduction/SOURCE.json are read
"""

import sys
from pathlib import Path

from elephan.studies.reproduce.page import write_sources


def main(folder: Path) -> None:
    """Write reproduction/SOURCE.md and reproduction/*.svg in the documentation's folder."""
    write_sources(folder / "reproduction")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
