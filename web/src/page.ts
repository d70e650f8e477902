// A report on a page: the scenario, metrics, figures. `elephan report` and results opened in `elephan ui` use the same page.

import { unpack, type CellsSpec, type Content, type Table, type TimeGroup } from "./content";
import { button, csvButton, download, fileName, h, scrolling } from "./dom";
import { explorer } from "./explorer";
import { extremes, heatFigure, xyFigure } from "./figures";
import { Linked, TimeChart } from "./timechart";

/** A value, and what follows it: its interval, and in how many repeats it is defined. */
const VALUE = /^(\S+) ([±[(].*)$/;

function table(spec: Table, name: string): HTMLElement {
  const marked = new Set((spec.marked ?? []).map(([row, column]) => `${row} ${column}`));
  const rows = [spec.head.map((cell) => (cell.unit ? `${cell.text} (${cell.unit})` : cell.text)), ...spec.rows];
  // Intervals have a column of their own, so that the values above each other are aligned.
  const split = spec.head.map((cell, k) => cell.numeric === true && spec.rows.some((row) => VALUE.test(row[k]!)));
  const head = spec.head.map((cell, k) => h("th", { scope: "col", class: cell.numeric ? "numeric" : undefined, colspan: split[k] ? 2 : undefined }, cell.text, cell.unit ? h("small", {}, cell.unit) : null));
  const row = (texts: string[], r: number) =>
    texts.flatMap((text, k) => {
      const shown = (part: string) => (marked.has(`${r} ${k}`) ? h("strong", {}, part) : part);
      const [, value = text, interval = ""] = (split[k] && VALUE.exec(text)) || [];
      const kind = spec.head[k]?.numeric ? "numeric" : text.length > 60 ? "long" : undefined;
      const cell = h(k === 0 ? "th" : "td", { class: kind, scope: k === 0 ? "row" : undefined }, shown(value));
      return split[k] ? [cell, h("td", { class: "interval" }, interval)] : [cell];
    });
  return h(
    "section",
    { class: "table" },
    h("header", {}, h("h2", {}, spec.title), csvButton(spec.title, `${name}-${spec.title}`, () => rows)),
    ...scrolling(
      spec.title,
      h(
        "table",
        {},
        h("thead", {}, h("tr", {}, ...head)),
        h("tbody", {}, ...spec.rows.map((texts, r) => h("tr", {}, ...row(texts, r)))),
      ),
    ),
    spec.note ? h("p", { class: "note" }, spec.note) : null,
  );
}

/** The maps of one quantity have one scale of colours. */
function cells(spec: CellsSpec, all: Content["figures"], name: string): HTMLElement {
  const alike = all.filter((other) => other.kind === "cells" && other.unit === spec.unit) as CellsSpec[];
  return heatFigure(spec, name, extremes(alike.flatMap((other) => other.values.flat())));
}

function group(spec: TimeGroup, name: string): HTMLElement {
  const linked = new Linked();
  const charts = spec.charts.map((chart) => {
    const lines = chart.lines.map((line) => ({ name: line.name, colour: line.colour, minor: line.minor, values: unpack(line.values) }));
    if (chart.until_s > 0) linked.extent = [0, Math.max(chart.until_s, linked.extent?.[1] ?? 0)];
    return new TimeChart({ ...chart, x: unpack(chart.time_s), lines }, linked, `${name}-${spec.title}`).element;
  });
  const tool = (text: string, title: string, act: () => void) => button(text, "quiet", act, { title, "aria-label": title });
  return h(
    "section",
    { class: "group" },
    h(
      "header",
      {},
      h("h2", {}, spec.title),
      h(
        "span",
        { class: "tools" },
        tool("−", "Zoom out", () => linked.step(2, 0)),
        tool("+", "Zoom in", () => linked.step(0.5, 0)),
        tool("all", "Show all", () => linked.zoom(null)),
      ),
    ),
    h("div", { class: "charts" }, ...charts),
  );
}

/** Text that can be copied. */
function copyable(text: string): HTMLElement {
  const copy = button("copy", "quiet", async () => {
    await navigator.clipboard.writeText(text);
    copy.textContent = "copied";
    setTimeout(() => (copy.textContent = "copy"), 1500);
  });
  return h("div", { class: "command" }, h("code", {}, text), copy);
}

/** Figures in a row. */
export function tiles(figures: Content["tiles"]): HTMLElement {
  const list = h("dl", { class: "tiles" });
  updateTiles(list, figures);
  return list;
}

/** Shows other figures in a row of them. The elements stay, so that a value can be selected, and its meaning read, while a run goes on. */
export function updateTiles(list: HTMLElement, figures: Content["tiles"]): void {
  while (list.children.length > figures.length) list.lastElementChild!.remove();
  while (list.children.length < figures.length) list.append(h("div", {}, h("dt", {}), h("dd", {}), h("dd", { class: "unit" })));
  figures.forEach((one, k) => {
    const tile = list.children[k] as HTMLElement;
    tile.title = one.meaning;
    [one.name, one.value, one.unit].forEach((text, part) => {
      if (tile.children[part]!.textContent !== text) tile.children[part]!.textContent = text;
    });
  });
}

/** Everything except the page's own head. */
export function page(content: Content): HTMLElement {
  const name = fileName(content.title);
  return h(
    "article",
    { class: "content" },
    h("header", { class: "title" }, h("h1", {}, content.title), h("p", {}, content.subtitle)),
    content.tiles.length > 0 && tiles(content.tiles),
    ...content.tables.map((spec) => table(spec, name)),
    content.runs && explorer(content.runs, name),
    content.figures.length > 0 && h("section", { class: "group" }, h("div", { class: "charts" }, ...content.figures.map((spec) => (spec.kind === "cells" ? cells(spec, content.figures, name) : xyFigure(spec, name))))),
    ...content.pictures.map(({ title, url, csv: data }) => {
      const save = () => download(`${fileName(title)}.csv`, data);
      const file = data && button("CSV", "quiet", save, { "aria-label": `${title}: data as CSV` });
      return h("figure", { class: "chart picture" }, h("figcaption", {}, h("h3", {}, title), file), h("img", { src: url, alt: title }));
    }),
    ...content.groups.map((spec) => group(spec, name)),
    h(
      "section",
      { class: "provenance" },
      h("h2", {}, "Run details"),
      content.command ? copyable(content.command) : null,
      h("dl", {}, ...content.facts.flatMap(([fact, value]) => [h("dt", {}, fact), h("dd", {}, value)])),
      ...content.notes.map((note) => h("p", { class: "note" }, note)),
      content.scenario ? h("details", {}, h("summary", {}, "The scenario"), h("pre", {}, h("code", {}, content.scenario))) : null,
    ),
  );
}
