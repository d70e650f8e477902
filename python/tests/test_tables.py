"""Tables and metrics: one form for all, with titles and units from a single source."""

import json
from pathlib import Path

import pytest
from rich.cells import cell_len

from elephan import _core
from elephan.api import tables
from elephan.api.charts import DROPS, OF_FLOWS, OF_LINKS
from elephan.api.metrics import METRICS, Metric, declared, metrics_of
from elephan.api.scenario import load
from elephan.base.table import Head, Table, of_markdown, text_heads
from elephan.base.text import Terminal
from elephan.engines.run import run
from elephan.studies import recommend, side_by_side
from elephan.studies.reproduce.li2006 import systems
from elephan.studies.statistics import Estimate

FIELDS = [field for field in json.loads(_core.declared_fields()) if field["shown"] is not None]
PARTS = dict.fromkeys(field["part"] for field in FIELDS)


def shown(table: Table, width: int) -> list[str]:
    terminal = Terminal()
    terminal.width = width
    with terminal.capture() as captured:
        terminal.print(table.to_terminal(terminal.width))
    return captured.get().splitlines()


def wide() -> Table:
    head = [*text_heads("name", "what"), *(Head(f"metric {k}", "Mbit/s") for k in range(9))]
    rows = [[name, f"{name} and further words", *(f"{k}00.25 ± 1.5" for k in range(9))] for name in ("a", "b")]
    return Table("A title", head, rows)


@pytest.mark.parametrize("width", [30, 60, 80, 132, 200])
def test_a_table_is_within_the_terminal_and_whole(width: int):
    lines = shown(wide(), width)
    assert max(map(cell_len, lines)) <= width
    text = "\n".join(lines)
    for cell in (cell for row in wide().texts for cell in row[2:]):
        assert cell in text
    assert text.count("metric") == 9
    # Its first columns identify the rows of each further part, if there is room for them.
    if width >= 60:
        assert text.count("┃ name") == text.count("┏")


def test_what_is_no_terminal_has_a_fixed_width():
    assert Terminal().width == Terminal(stderr=True).width == 200


def test_a_cell_is_text_a_number_or_nothing():
    table = Table("", [*text_heads("cc"), Head("rate", "Mbit/s"), Head("loss rate")], [["reno", 1234.5678, None]])
    assert table.to_markdown() == "| cc | rate (Mbit/s) | loss rate |\n| --- | ---: | ---: |\n| reno | 1,235 | - |\n"
    assert table.to_dicts() == [{"cc": "reno", "rate Mbit/s": 1234.5678, "loss rate": None}]
    assert table.to_csv() == 'cc,rate (Mbit/s),loss rate\nreno,"1,235",-\n'
    assert table.to_page()["rows"] == [["reno", "1,235", "-"]]


def test_what_is_markdown_already_stays_so():
    assert "| [a](b.md) |" in of_markdown(text_heads("link"), [["[a](b.md)"]]).to_markdown()
    assert "| [a](b.md) |" not in Table("", text_heads("link"), [["[a](b.md)"]]).to_markdown()


def test_titles_and_units_of_tables_are_those_of_the_declarations():
    heads = {(field["title"], field["shown"]["unit"]) for field in FIELDS}
    assert {(m.name, m.unit) for part in PARTS for m in metrics_of(part)} == heads
    assert {(m.name, m.unit) for m in METRICS} <= heads
    titles = {field["title"] for field in FIELDS}
    units = {title: {unit.split(",")[0] for of, unit in heads if of == title} for title in titles}
    own = {tables.RETRANSMITTED.head, tables.LOST.head}
    for example in ("two-flows", "web-users", "priority", "slow-host"):
        made = tables.of_run(
            run(load(Path("scenarios/examples") / f"{example}.toml", {"duration": "25 s", "measure": "{}"}))
        )
        assert made
        for head in (head for table in made for head in table.head):
            if head.numeric and head.text in titles and head not in own:
                assert head.unit.split(",")[0] in units[head.text], head


@pytest.mark.parametrize(
    "metric",
    [
        *side_by_side.QUANTITIES,
        *(evidence.metric for evidence in recommend.EVIDENCE),
        *systems.METRICS.values(),
    ],
)
def test_a_metric_of_a_study_has_the_title_and_the_scale_of_its_declaration(metric: Metric):
    if not metric.column:
        assert metric.reading is not None
        return
    field = next(one for one in FIELDS if one["name"] == metric.column and one["title"] == metric.name)
    assert metric.factor == field["shown"]["factor"]
    assert metric.meaning == field["meaning"]


def test_charts_have_the_titles_and_meanings_of_their_columns():
    columns = {(one["table"], one["name"]): one for one in json.loads(_core.declared_columns())}
    for table, charts in (("flows", OF_FLOWS), ("queues", OF_LINKS)):
        for metric in charts.values():
            column = columns[table, metric.column]
            assert (metric.name, metric.meaning) == (column["title"], column["meaning"])
            # The columns of the page during a run are live columns.
            assert column["is_live"]


def test_the_page_has_no_labels_of_its_own():
    source = Path("web/src/live.ts").read_text(encoding="utf-8")
    for metric in (*OF_FLOWS.values(), *OF_LINKS.values(), DROPS):
        assert f'"{metric.title}"' not in source
        assert metric.meaning not in source


def test_a_metric_writes_values_counts_and_estimates():
    goodput, reductions = declared("Summary", "goodput_bit_s"), declared("FlowSummary", "congestion_events")
    assert goodput.head == Head("goodput", "Mbit/s, application bytes")
    assert goodput.label == "goodput (Mbit/s)"
    assert goodput.text(None) == "-"
    assert goodput.text(goodput.scaled(12_345_678.0)) == "12.3"
    assert goodput.text(goodput.estimated(Estimate.of([1e6, 2e6, 3e6]))) == "2.0 ± 2.5"
    assert reductions.text(12_345) == "12,345"
