"""`elephan path recommend --path`: ways to send so much data over a measured path."""

from collections.abc import Sequence
from pathlib import Path

from elephan import _core
from elephan.api.run import write_json
from elephan.base.folders import check_new, new_file, new_folder
from elephan.cli.output import out, show
from elephan.cli.progress import progress_bar
from elephan.cli.progress import span as roughly
from elephan.paths import predict, scenario
from elephan.paths.recommend import USUAL_CC, Advice, cost, read_path, recommend, to_dict, ways
from elephan.paths.tables import of_ways, span

DOCUMENT = "recommendation.json"


def for_path(
    path: Path, size: str | None, streams: Sequence[str], cc: Sequence[str] | None, draws: int, folder: Path | None,
    *, force: bool, form: str,
) -> None:  # fmt: skip
    """Print the ranking, and write it and the prediction of the best way into `folder`."""
    amount = _core.quantity(size) if size is not None else None
    if amount is None or amount[1] != "bytes" or amount[0] <= 0:
        raise _core.ScenarioError(
            f'--size: expected an amount of data such as "1TB", found {"none" if size is None else repr(size)}'
        )
    if not all(word.isdecimal() and 1 <= int(word) <= 256 for word in streams) or not streams:
        raise _core.ScenarioError(
            f"--streams: expected numbers from 1 to 256, separated by commas, found {','.join(streams)!r}"
        )
    is_own = folder is not None and folder.resolve() == path.resolve().parent
    if folder is not None and not is_own:
        check_new(folder, force=force)
    found, _ = read_path(path)
    candidates = ways(cc or USUAL_CC, sorted({int(word) for word in streams}))
    runs, duration_s, core_s = cost(found, amount[0], len(candidates), draws)
    if form == "table":
        out.message(f"{runs} simulations of {duration_s:.3g} s each, about {roughly(core_s)} of a core")
    with progress_bar(f"{len(candidates)} ways") as progress:
        advice = recommend(found, amount[0], candidates, draws=draws, progress=progress)
    if folder is not None:
        if is_own:
            _write(folder, advice)
        else:
            with new_folder(folder, force=force) as place:
                (place / scenario.FILE).write_bytes(path.read_bytes())
                found.write(place)
                _write(place, advice)
    document = to_dict(advice)
    show([of_ways(document["ways"], f"{size} over the path of {advice.path.source}")], form, document)
    if form != "table":
        return
    for note in advice.notes:
        out.message(f"note: {note}")
    best = advice.ways[0]
    out.strong(f"best: {best.way.name}: {span(best.finish_s)}", f"; {advice.command()}")
    if folder is not None:
        out.message(f"results in {folder}; `elephan report {folder}` shows them, and a transfer beside them")


def _write(place: Path, advice: Advice) -> None:
    with new_file(place / DOCUMENT) as file:
        write_json(file, to_dict(advice))
    with new_file(place / predict.FILE) as file:
        advice.prediction.write(file)
