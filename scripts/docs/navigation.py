"""The site's navigation: `folder/*.md` in mkdocs.yml stands for the pages of that folder that are not named there.

So the page of a new algorithm, queue discipline or metric needs no line of its own. `make docs` builds the site from site.yml,
which this writes: mkdocs.yml with all pages.
"""

from pathlib import Path
from typing import Any

import yaml

import elephan
from elephan.api.metrics import METRICS
from elephan.api.registry import queues


def declared() -> list[str]:
    """The pages of declared entries, in the order of their declaration."""
    return [
        *(f"algorithms/{one.name}.md" for one in elephan.algorithms()),
        *(f"queues/{one.name}.md" for one in queues()),
        *(f"metrics/{one.name.replace(' ', '-')}.md" for one in METRICS),
    ]


def named(nav: list[Any]) -> set[str]:
    """Every page that the navigation names."""
    found: set[str] = set()
    for item in nav:
        for value in item.values() if isinstance(item, dict) else [item]:
            found |= named(value) if isinstance(value, list) else {value}
    return found


def expanded(nav: list[Any], docs: Path, known: set[str]) -> list[Any]:
    """The navigation with each `folder/*.md` expanded: declared entries first, in their order, then the others by name."""
    order = {page: number for number, page in enumerate(declared())}
    full: list[Any] = []
    for item in nav:
        if isinstance(item, dict):
            full.append({title: expanded(v, docs, known) if isinstance(v, list) else v for title, v in item.items()})
        elif "*" in item:
            pages = {
                page.relative_to(docs).as_posix() for page in docs.glob(item) if page.name != "template.md"
            } - known
            pages |= {page for page in order if Path(page).match(item)}
            full += [
                {title(docs / page): page}
                for page in sorted(pages, key=lambda page: (order.get(page, len(order)), page))
            ]
        else:
            full.append(item)
    return full


def title(page: Path) -> str:
    """The title of a page in the navigation: the name of an algorithm or a queue, otherwise the heading of the page."""
    if page.parent.name != "metrics" or not page.is_file():
        return page.stem
    return page.read_text(encoding="utf-8").partition("\n")[0].removeprefix("# ")


def main() -> None:
    """Write site.yml."""
    root = Path(__file__).parents[2]
    config = yaml.safe_load((root / "mkdocs.yml").read_text(encoding="utf-8"))
    config["nav"] = expanded(config["nav"], root / config["docs_dir"], named(config["nav"]))
    (root / "site.yml").write_text(yaml.safe_dump(config, sort_keys=False), encoding="utf-8")


if __name__ == "__main__":
    main()
