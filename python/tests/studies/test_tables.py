"""Tables and metrics: one form for all, with titles and units from a single source."""

import json
from pathlib import Path

import pytest
from rich.cells import cell_len

from elephan import _core
from elephan.api import changes, tables
from elephan.api.metrics import METRICS, Metric, declared, metrics_of
from elephan.api.pictures.over_time import DROPS, QUANTITIES
from elephan.api.scenario import Scenario, load
from elephan.base.numbers import sparkline
from elephan.base.table import Head, Table, of_markdown, text_heads
from elephan.base.text import Terminal
from elephan.cli.output import chosen, named, told
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
            run(load(Path("python/elephan/examples") / f"{example}.toml", {"duration": "25 s", "measure": "{}"}))
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
        systems.OVERHEAD,
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
    for quantity in QUANTITIES.values():
        metric = quantity.metric
        if metric is not DROPS:
            column = columns["flows" if quantity.of == "flows" else "queues", metric.column]
            assert (metric.name, metric.meaning) == (column["title"], column["meaning"])
            # The columns of the page during a run are live columns.
            assert quantity.is_live == column["is_live"]


def test_the_page_has_no_labels_of_its_own():
    source = Path("web/src/live.ts").read_text(encoding="utf-8")
    for metric in (quantity.metric for quantity in QUANTITIES.values()):
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


def test_a_table_of_few_rows_is_turned_where_it_is_too_wide():
    lines = shown(wide(), 75)
    assert [line.split("│")[1].strip() for line in lines if "Mbit/s" in line] == [
        f"metric {k} (Mbit/s)" for k in range(9)
    ]
    assert any("a and further words" in line and "b and further words" in line for line in lines)
    # Many rows are not.
    many = Table("", wide().head, wide().rows * 9)
    assert "metric 0\n" not in "\n".join(shown(many, 75))
    assert sum("metric" in line for line in shown(many, 75)) > 1


@pytest.mark.parametrize("rows", [1, 12])
def test_a_table_of_text_alone_keeps_every_cell_and_each_part_names_its_rows(rows: int):
    heads = text_heads("name", *(f"column-{k}" for k in range(5)))
    table = Table("", heads, [[f"row-{n}", *(f"{n}-{k}-{'x' * 12}" for k in range(5))] for n in range(rows)])
    printed = "\n".join(shown(table, 60))
    assert all(cell in printed for row in table.texts for cell in row)
    if rows == 1:
        assert printed.count("row-0") == 1
    else:
        parts = printed.count("┏")
        assert parts > 1
        assert printed.count("row-11") == parts


def test_what_is_no_terminal_gets_no_box():
    terminal = Terminal()
    with terminal.capture() as captured:
        terminal.show(wide())
    lines = captured.get().splitlines()
    assert lines[0].strip() == "A title"
    assert not set(captured.get()) & set("┃│━─")
    assert lines[1].split()[:4] == ["metric", "0", "metric", "1"]


def test_a_sparkline_has_the_mean_of_each_place():
    assert sparkline([0, 0, 1, 3], [0.0, 2.0, 8.0, 4.0], 4, 8.0) == "▂█ ▅"


def test_a_marked_cell_is_bold_or_has_a_star_and_the_mark_is_explained():
    table = Table(
        "t", [*text_heads("cc"), Head("a"), Head("b")], [["x", 1, 2], ["y", 3, 4]], "n", frozenset({(1, 1)}), "best"
    )
    assert table.written("md").splitlines()[-3:] == ["| y | **3** | 4 |", "", "bold: best; n"]
    assert r"y & \textbf{3} & 4 \\" in table.written("latex")
    assert "*" not in table.written("csv")
    out = Terminal()
    with out.capture() as shown:
        out.print(table.to_terminal(40, boxed=False))
    assert "3 *" in shown.get()
    assert "*: best; n" in " ".join(shown.get().split())
    assert table.only([0, 2, 1]).marked == {(1, 2)}
    assert table.only([0, 2]).marked == set()


def test_columns_are_chosen_by_name_or_by_what_they_tell():
    heads = [*text_heads("cc"), Head("fair share"), Head("loss"), Head("goodput")]
    table = Table("", heads, [["x", None, 1, 2], ["y", None, 1, 3]])
    names = named("loss,fair_share", heads)
    assert [head.text for head in chosen([table], names)[0].head] == ["cc", "loss", "fair share"]
    assert chosen([table], named("all", heads)) == [table]
    assert named(None, heads) is None
    with pytest.raises(_core.ScenarioError, match=r"--columns: expected .*goodput.*, found 'godput'"):
        named("godput", heads)
    shown = told(table)
    assert [head.text for head in shown.head] == ["cc", "goodput"]
    assert shown.note == "--columns all shows fair_share, loss as well"
    assert told(Table("", heads, [["x", None, 1, 2]])).texts == [["x", "1", "2"]]


def test_what_holds_on_a_link_that_changes_is_told_for_each_interval():
    document = {
        "duration": "100 s",
        "path": {"rate": "20 Mbit/s", "rtt": "40 ms"},
        "flow": [{"cc": "reno"}],
        "event": [
            {"at": "30 s", "link": "bottleneck", "delay": "60 ms", "loss": {"name": "random", "probability": 0.001}},
            {"at": "10 s", "link": "bottleneck", "rate": "10 Mbit/s", "up": False},
            {"at": "99 s", "link": "bottleneck", "rate": "1 Mbit/s"},
        ],
    }
    made = changes.table(Scenario(document), 50.0)
    assert [head.text for head in made.head[2:]] == [f"bottleneck {one}" for one in ("rate", "delay", "loss", "state")]
    assert made.rows == [
        ["0", "10", "20 Mbit/s", "20 ms", "none", "up"],
        ["10", "30", "10 Mbit/s", "20 ms", "none", "down"],
        ["30", "50", "10 Mbit/s", "60 ms", "0.1 %", "down"],
    ]
    assert changes.table(Scenario({"path": {"rate": "20 Mbit/s"}, "flow": []}), 50.0).rows == []


def test_a_single_row_that_is_turned_has_no_empty_head():
    table = Table("", [Head(f"metric {number}", "Mbit/s") for number in range(9)], [[float(n) for n in range(9)]])
    lines = shown(table, 40)
    assert "metric 0 (Mbit/s)" in lines[1]
