// Stored results: the list, one of them, or several side by side.

import { api, mistakesOf, paragraphs, type ResultEntry } from "./api";
import type { Content } from "./content";
import { button, empty, h, scrolling } from "./dom";
import type { Keys } from "./keys";
import { page } from "./page";

const COMPARED = ["run", "comparison", "sweep"];
/** What the list can be sorted by: a column's key and head. */
const COLUMNS = [["name", "folder"], ["kind", "kind"], ["title", "scenario"], ["written", "written"]] as const;
type Column = (typeof COLUMNS)[number][0];

const address = (name: string): string => `#/results/${name.split("/").map(encodeURIComponent).join("/")}`;

/** The list of results: searched, sorted, and ticked for comparison. */
export class ResultsList {
  readonly element: HTMLElement;
  private readonly chosen = new Set<string>();
  private sort: { by: Column; down: boolean } = { by: "written", down: true };
  private readonly search = h("input", { type: "search", id: "search", placeholder: "name, kind or scenario", "aria-label": "Search the results", oninput: () => this.paint() });
  private readonly body = h("tbody", {});
  private readonly head = h("tr", {});
  private readonly count = h("span", { class: "note", role: "status" });
  private readonly compare = button("", "", () => (location.hash = `#/compare/${[...this.chosen].map(encodeURIComponent).join("/")}`), { id: "compare" });

  constructor(private readonly results: ResultEntry[]) {
    this.element = h(
      "section",
      { class: "table results" },
      h("header", {}, h("h1", {}, "Results"), this.compare),
      h("div", { class: "row" }, this.search, this.count),
      ...scrolling("Results", h("table", {}, h("thead", {}, this.head), this.body)),
      h("p", { class: "note" }, "Comparisons and sweeps are started by ", h("code", {}, "elephan compare"), " and ", h("code", {}, "elephan sweep"), "."),
    );
    this.paint();
  }

  /** What single keys do here. */
  get keys(): Keys {
    return { "/": ["search the results", () => this.search.focus()], c: ["compare what is ticked", () => this.compare.click()] };
  }

  private paint(): void {
    const words = this.search.value.toLowerCase().split(/\s+/).filter(Boolean);
    const { by, down } = this.sort;
    const shown = this.results
      .filter((result) => words.every((word) => COLUMNS.some(([column]) => result[column].toLowerCase().includes(word))))
      .sort((a, b) => a[by].localeCompare(b[by], "en", { numeric: true }) * (down ? -1 : 1));
    const few = this.chosen.size < 2;
    this.count.textContent = `${words.length > 0 ? `${shown.length} of ` : ""}${this.results.length} ${this.results.length === 1 ? "result" : "results"}${few && this.results.length > 1 ? "; tick two or more to compare them" : ""}`;
    this.compare.disabled = few;
    this.compare.textContent = few ? "Compare" : `Compare ${this.chosen.size} results`;
    this.head.replaceChildren(
      h("td", {}),
      ...COLUMNS.map(([column, name]) => {
        const isBy = column === by;
        const arrow = h("span", { "aria-hidden": "true" }, isBy ? (down ? " ↓" : " ↑") : "");
        return h("th", { scope: "col", "aria-sort": isBy ? (down ? "descending" : "ascending") : undefined }, button(name, "sort", () => this.order(column)), arrow);
      }),
    );
    this.body.replaceChildren(...shown.map((result) => this.row(result)));
  }

  private row({ name, kind, problem, title, written }: ResultEntry): HTMLElement {
    const box = h("input", { type: "checkbox", "aria-label": `Select ${name}`, checked: this.chosen.has(name), disabled: !COMPARED.includes(kind) || problem !== "" });
    box.addEventListener("change", () => {
      if (box.checked) this.chosen.add(name);
      else this.chosen.delete(name);
      this.paint();
      this.body.querySelector<HTMLElement>(`[aria-label="Select ${CSS.escape(name)}"]`)?.focus();
    });
    return h(
      "tr",
      {},
      h("td", {}, box),
      h("th", { scope: "row" }, h("a", { href: address(name) }, name)),
      h("td", {}, h("span", { class: "kind" }, kind)),
      problem ? h("td", { class: "error" }, `damaged: ${problem}`) : h("td", {}, title),
      h("td", {}, new Date(written).toLocaleString("sv")),
    );
  }

  private order(by: Column): void {
    this.sort = { by, down: this.sort.by === by ? !this.sort.down : by === "written" };
    this.paint();
    this.head.querySelector<HTMLElement>("[aria-sort] button")?.focus();
  }
}

/** One result, or several side by side. */
export async function resultsPage(names: string[]): Promise<HTMLElement> {
  try {
    const content = await api.content<Content>(names);
    const tools = h("p", { class: "row" }, h("a", { href: "#/results" }, "all results"), names.length === 1 ? h("a", { href: api.reportUrl(names[0]!), download: "" }, "download report") : null);
    return h("div", {}, tools, page(content));
  } catch (error) {
    return empty("h1", "These results cannot be shown", ...paragraphs(mistakesOf(error)), h("a", { href: "#/results", class: "chip" }, "all results"));
  }
}
