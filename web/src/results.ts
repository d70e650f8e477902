// Stored results: the list, one of them, or several side by side.

import { api, type ResultEntry } from "./api";
import type { Content } from "./content";
import { h, scrolling } from "./dom";
import type { Keys } from "./keys";
import { mistakesOf } from "./live";
import { page } from "./page";

const COMPARED = ["run", "comparison", "sweep"];
/** What the list can be sorted by: a column's key and head. */
const COLUMNS = [["name", "folder"], ["kind", "kind"], ["title", "scenario"], ["tags", "tags"], ["written", "written"]] as const;
type Column = (typeof COLUMNS)[number][0];

const text = (result: ResultEntry, column: Column): string => (column === "tags" ? result.tags.join(" ") : result[column]);
const address = (name: string): string => `#/results/${name.split("/").map(encodeURIComponent).join("/")}`;

/** The list of results: searched, sorted, tagged, deleted, and ticked for comparison. */
export class ResultsList {
  readonly element = h("section", { class: "table results" });
  private results: ResultEntry[] = [];
  private trash: { key: string; name: string }[] = [];
  private readonly chosen = new Set<string>();
  private sort: { by: Column; down: boolean } = { by: "written", down: true };
  private readonly search = h("input", { type: "search", id: "search", placeholder: "name, kind, scenario or tag", "aria-label": "Search the results" });
  private readonly body = h("tbody", {});
  private readonly head = h("tr", {});
  private readonly count = h("span", { class: "note", role: "status" });
  private readonly message = h("div", { class: "outcome" });
  private readonly deleted = h("details", {});
  private readonly compare = h("button", { type: "button", id: "compare", disabled: true });

  /** Reads and shows the list. */
  async begin(): Promise<this> {
    this.search.addEventListener("input", () => this.paint());
    this.compare.addEventListener("click", () => (location.hash = `#/compare/${[...this.chosen].map(encodeURIComponent).join("/")}`));
    await this.read();
    return this;
  }

  /** What single keys do here. */
  get keys(): Keys {
    return { "/": ["search the results", () => this.search.focus()], c: ["compare what is ticked", () => this.compare.click()] };
  }

  private async read(): Promise<void> {
    ({ results: this.results, trash: this.trash } = await api.results());
    for (const name of this.chosen) if (!this.results.some((result) => result.name === name)) this.chosen.delete(name);
    const table = h("table", {}, h("thead", {}, this.head), this.body);
    this.element.replaceChildren(
      h("header", {}, h("h1", {}, "Results"), this.results.length > 0 && this.compare),
      this.results.length > 0 ? h("div", { class: "row" }, this.search, this.count) : "",
      this.message,
      ...(this.results.length > 0 ? scrolling("Results", table) : [h("div", { class: "empty" }, h("h2", {}, "No results yet"), h("p", {}, "This list has the runs that are started here, and the results folders that the command line writes."), h("p", {}, h("a", { href: "#/", class: "chip" }, "Explore")))]),
      this.deleted,
      h("p", { class: "note" }, "Comparisons and sweeps are started by ", h("code", {}, "elephan compare"), " and ", h("code", {}, "elephan sweep"), "."),
    );
    this.paint();
  }

  private paint(): void {
    const words = this.search.value.toLowerCase().split(/\s+/).filter(Boolean);
    const { by, down } = this.sort;
    const shown = this.results
      .filter((result) => words.every((word) => COLUMNS.some(([column]) => text(result, column).toLowerCase().includes(word))))
      .sort((a, b) => text(a, by).localeCompare(text(b, by), "en", { numeric: true }) * (down ? -1 : 1));
    const few = this.chosen.size < 2;
    this.count.textContent = `${words.length > 0 ? `${shown.length} of ` : ""}${this.results.length} ${this.results.length === 1 ? "result" : "results"}${few && this.results.length > 1 ? "; tick two or more to compare them" : ""}`;
    this.compare.disabled = few;
    this.compare.textContent = few ? "Compare" : `Compare ${this.chosen.size} results`;
    this.head.replaceChildren(
      h("td", {}),
      ...COLUMNS.map(([column, name]) => {
        const isBy = column === by;
        const button = h("button", { type: "button", class: "sort", onclick: () => this.order(column) }, name, h("span", { "aria-hidden": "true" }, isBy ? (down ? " ↓" : " ↑") : ""));
        return h("th", { scope: "col", "aria-sort": isBy ? (down ? "descending" : "ascending") : undefined }, button);
      }),
      h("td", {}),
    );
    this.body.replaceChildren(...shown.map((result) => this.row(result)));
    this.deleted.hidden = this.trash.length === 0;
    this.deleted.replaceChildren(
      h("summary", {}, `Deleted: ${this.trash.length}`),
      h("p", { class: "note" }, "They are in .elephan-trash within the results folder. Remove that folder to free the space."),
      h("ul", {}, ...this.trash.map(({ key, name }) => h("li", {}, name, " ", h("button", { type: "button", class: "quiet", "aria-label": `Restore ${name}`, onclick: () => void this.restore(key) }, "restore")))),
    );
  }

  private row(result: ResultEntry): HTMLElement {
    const { name, kind, problem } = result;
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
      problem ? h("td", { class: "error" }, `damaged: ${problem}`) : h("td", {}, result.title),
      h("td", {}, ...result.tags.map((tag) => h("button", { type: "button", class: "tag", title: "Search for this tag", onclick: () => this.find(tag) }, tag)), h("button", { type: "button", class: "quiet", "aria-label": result.tags.length > 0 ? `edit the tags of ${name}` : `tag ${name}`, onclick: (event: Event) => this.edit(result, event.currentTarget as HTMLElement) }, result.tags.length > 0 ? "edit" : "tag")),
      h("td", {}, new Date(result.written).toLocaleString("sv")),
      h("td", {}, h("button", { type: "button", class: "quiet", "aria-label": `Delete ${name}`, disabled: kind === "folder", onclick: () => void this.remove(name) }, "delete")),
    );
  }

  private order(by: Column): void {
    this.sort = { by, down: this.sort.by === by ? !this.sort.down : by === "written" };
    this.paint();
    this.head.querySelector<HTMLElement>("[aria-sort] button")?.focus();
  }

  private find(tag: string): void {
    this.search.value = tag;
    this.paint();
    this.search.focus();
  }

  private edit(result: ResultEntry, at: HTMLElement): void {
    const input = h("input", { type: "text", value: result.tags.join(", "), placeholder: "paper, draft", "aria-label": `Tags of ${result.name}, separated by commas` });
    const save = async () => {
      const tags = [...new Set(input.value.split(",").map((tag) => tag.trim()).filter(Boolean))];
      await this.attempt(async () => {
        await api.tag(result.name, tags);
        result.tags = tags;
        this.paint();
      });
    };
    const form = h("form", { class: "pair" }, input, h("button", { type: "submit", class: "plain" }, "save"));
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      void save();
    });
    form.addEventListener("keydown", (event) => event.key === "Escape" && this.paint());
    at.parentElement!.replaceChildren(form);
    input.focus();
  }

  private async remove(name: string): Promise<void> {
    await this.attempt(async () => {
      const { key } = await api.remove(name);
      await this.read();
      const undo = h("button", { type: "button", class: "quiet", onclick: () => void this.restore(key) }, "undo");
      this.message.replaceChildren(h("div", { class: "banner", role: "status" }, h("span", {}, `Deleted ${name}.`), undo));
      undo.focus();
    });
  }

  private async restore(key: string): Promise<void> {
    await this.attempt(async () => {
      const { name } = await api.restore(key);
      await this.read();
      this.message.replaceChildren(h("div", { class: "banner good", role: "status" }, `Restored ${name}.`));
    });
  }

  private async attempt(what: () => Promise<void>): Promise<void> {
    try {
      this.message.replaceChildren();
      await what();
    } catch (error) {
      this.message.replaceChildren(h("div", { class: "banner bad", role: "alert" }, ...mistakesOf(error).map(({ key, problem }) => h("p", {}, key ? `${key}: ${problem}` : problem))));
    }
  }
}

/** One result, or several side by side. */
export async function resultsPage(names: string[]): Promise<HTMLElement> {
  try {
    const content = await api.content<Content>(names);
    const tools = h("p", { class: "row" }, h("a", { href: "#/results" }, "all results"), names.length === 1 ? h("a", { href: api.reportUrl(names[0]!), download: "" }, "download report") : null);
    return h("div", {}, tools, page(content));
  } catch (error) {
    return h("section", { class: "empty" }, h("h1", {}, "These results cannot be shown"), ...mistakesOf(error).map(({ problem }) => h("p", {}, problem)), h("p", {}, h("a", { href: "#/results", class: "chip" }, "all results")));
  }
}
