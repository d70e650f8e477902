"""What a probe writes: `path.toml`, `path.json`, `probe.json`, `packets.parquet`, and a results folder for each transfer."""

from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from elephan.api.run import write_json
from elephan.api.scenario import flow
from elephan.base.text import file_name
from elephan.paths.probe.budget import Share
from elephan.paths.probe.measure import Found
from elephan.paths.probe.session import Session
from elephan.paths.scenario import write as write_scenario
from elephan.paths.transfer import named, recorded

FILE, PACKETS = "probe.json", "packets.parquet"


def write(place: Path, session: Session, found: Found, shares: dict[str, Share], spent: tuple[int, float]) -> None:
    """Write all into an empty folder."""
    scenario = write_scenario(place, found.estimates)
    document = {
        "figures": {name: msgspec.to_builtins(value) for name, value in found.figures.items()},
        "curve": [vars(point) for point in found.points],
        "budget": {
            share.test: {"bytes": share.bytes, "seconds": share.seconds, "spent_bytes": session.cost.get(share.test, 0)}
            for share in shares.values()
        },
        "spent_bytes": spent[0],
        "spent_seconds": spent[1],
    }
    write_json(place / FILE, document)
    pq.write_table(packets(session), place / PACKETS)
    for transfer in found.transfers:
        if transfer.tables is not None:
            flows = [flow(named(transfer.cc), label=label) for label in transfer.tables["labels"]]
            run = recorded(transfer.tables, flows, scenario, transfer.tables["duration_s"])
            folder = place / file_name(transfer.name.replace(" ", "-"))
            folder.mkdir()
            run.write_into(folder)


def packets(session: Session) -> pa.Table:
    """A row for each packet of each stream. A time that did not happen is null."""

    def joined(one: str) -> Any:
        return np.concatenate([getattr(seen, one) for _, seen in session.streams])

    lengths = [len(seen.sizes) for _, seen in session.streams]
    names = np.repeat(np.array([test for test, _ in session.streams], object), lengths)
    columns = {
        "test": pa.array(names, pa.string()).dictionary_encode(),
        "stream": pa.array(np.repeat(np.arange(len(lengths), dtype=np.uint32), lengths)),
        "size_bytes": pa.array(joined("sizes").astype(np.uint32)),
    }
    for name in ("due", "sent", "arrived", "echoed", "back"):
        columns[f"{name}_s"] = pa.array(joined(name), pa.float64(), from_pandas=True)
    return pa.table(columns)
