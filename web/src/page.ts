// A report on a page: the scenario, metrics, figures. `elephan report` and results opened in `elephan ui` use the same page.

import { unpack, type Content, type Table, type TimeGroup } from "./content";
import { csv, download, fileName, h } from "./dom";
import { explorer } from "./explorer";
import { xyFigure } from "./figures";
import { Linked, TimeChart } from "./timechart";

function table(spec: Table, name: string): HTMLElement {
  const rows = [spec.head.map((cell) => (cell.unit ? `${cell.text} (${cell.unit})` : cell.text)), ...spec.rows];
  const save = () => download(`${fileName(`${name}-${spec.title}`)}.csv`, csv(rows));
  return h(
    "section",
    { class: "table" },
    h("header", {}, h("h2", {}, spec.title), h("button", { class: "quiet", type: "button", onclick: save, "aria-label": `${spec.title}: data as CSV` }, "CSV")),
    h(
      "div",
      { class: "scroll", tabindex: 0, role: "region", "aria-label": spec.title },
      h(
        "table",
        {},
        h("thead", {}, h("tr", {}, ...spec.head.map((cell) => h("th", { scope: "col", class: cell.numeric ? "numeric" : undefined }, cell.text, cell.unit ? h("small", {}, cell.unit) : null)))),
        h("tbody", {}, ...spec.rows.map((row) => h("tr", {}, ...row.map((text, k) => h(k === 0 ? "th" : "td", { class: spec.head[k]?.numeric ? "numeric" : text.length > 60 ? "long" : undefined, scope: k === 0 ? "row" : undefined }, text))))),
      ),
    ),
    spec.note ? h("p", { class: "note" }, spec.note) : null,
  );
}

function group(spec: TimeGroup, name: string): HTMLElement {
  const linked = new Linked();
  const charts = spec.charts.map((chart) => {
    const lines = chart.lines.map((line) => ({ name: line.name, colour: line.colour, minor: line.minor, values: unpack(line.values) }));
    return new TimeChart({ ...chart, x: unpack(chart.x), lines }, linked, `${name}-${spec.title}`).element;
  });
  const tool = (text: string, title: string, act: () => void) => h("button", { type: "button", class: "quiet", title, "aria-label": title, onclick: act }, text);
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
        tool("all", "Show everything", () => linked.zoom(null)),
      ),
    ),
    h("div", { class: "charts" }, ...charts),
  );
}

/** Text that can be copied. */
export function copyable(text: string): HTMLElement {
  const button = h("button", { type: "button", class: "quiet" }, "copy");
  button.addEventListener("click", async () => {
    await navigator.clipboard.writeText(text);
    button.textContent = "copied";
    setTimeout(() => (button.textContent = "copy"), 1500);
  });
  return h("div", { class: "command" }, h("code", {}, text), button);
}

/** Everything except the page's own head. */
export function page(content: Content): HTMLElement {
  const name = fileName(content.title);
  return h(
    "article",
    { class: "content" },
    h("header", { class: "title" }, h("h1", {}, content.title), h("p", {}, content.subtitle)),
    content.tiles.length > 0 &&
      h("dl", { class: "tiles" }, ...content.tiles.map((tile) => h("div", { title: tile.meaning }, h("dt", {}, tile.name), h("dd", {}, tile.value), h("dd", { class: "unit" }, tile.unit)))),
    ...content.tables.map((spec) => table(spec, name)),
    content.runs && explorer(content.runs, name),
    content.figures.length > 0 && h("section", { class: "group" }, h("div", { class: "charts" }, ...content.figures.map((spec) => xyFigure(spec, name)))),
    ...content.pictures.map(({ title, url, csv: data }) => {
      const save = () => download(`${fileName(title)}.csv`, data);
      const button = data && h("button", { class: "quiet", type: "button", onclick: save, "aria-label": `${title}: data as CSV` }, "CSV");
      return h("figure", { class: "chart picture" }, h("figcaption", {}, h("h3", {}, title), button), h("img", { src: url, alt: title }));
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
