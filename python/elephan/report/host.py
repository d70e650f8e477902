"""What a host can do, as a report."""

from pathlib import Path

from elephan.base.documents import inside
from elephan.base.kinds import HOST
from elephan.paths import host
from elephan.report.content import Content


def read(folder: Path) -> Content:
    """The report of a folder that `elephan path host` wrote."""
    document = HOST.load(folder)
    found = host.read(document)
    return Content(
        kind=HOST.name,
        title=folder.resolve().name,
        subtitle=document["conclusion"],
        facts=[
            ("measured by", f"Elephan {document['elephan']}, {document['date']}"),
            ("kernel", f"Linux {document['kernel']}, {document['machine']}"),
            ("cores", str(document["cores"])),
        ],
        command="elephan host",
        scenario=inside(folder, "host.toml").read_text(encoding="utf-8"),
        tables=host.tables(found),
        notes=[*host.advice(found), *(f"left out: {one}" for one in found.left_out), *found.notes],
    )
