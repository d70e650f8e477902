// Stored results: the list, one of them, or several side by side.

import { api } from "./api";
import type { Content } from "./content";
import { h } from "./dom";
import { mistakesOf } from "./live";
import { page } from "./page";

/** The list of results, with boxes to select some for comparison. */
export async function resultsList(): Promise<HTMLElement> {
  const results = await api.results();
  if (results.length === 0) return h("section", { class: "empty" }, h("h2", {}, "No results yet"), h("p", {}, "This page lists runs started here and results folders written by the command line."));
  const chosen = new Set<string>();
  const compare = h("button", { type: "button", disabled: true }, "compare selected runs");
  compare.addEventListener("click", () => (location.hash = `#/compare/${[...chosen].map(encodeURIComponent).join("/")}`));
  const rows = results.map((result) => {
    const box = h("input", { type: "checkbox", "aria-label": `Select ${result.name}`, disabled: result.kind !== "run" || result.problem !== "" });
    box.addEventListener("change", () => {
      if (box.checked) chosen.add(result.name);
      else chosen.delete(result.name);
      compare.disabled = chosen.size < 2;
    });
    const written = new Date(result.written).toLocaleString();
    return h("tr", {}, h("td", {}, box), h("th", { scope: "row" }, h("a", { href: `#/results/${result.name.split("/").map(encodeURIComponent).join("/")}` }, result.name)), h("td", {}, result.kind), result.problem ? h("td", { class: "error" }, `damaged: ${result.problem}`) : h("td", {}, result.title), h("td", {}, written));
  });
  return h(
    "section",
    { class: "table" },
    h("header", {}, h("h2", {}, "Results"), compare),
    h("div", { class: "scroll" }, h("table", {}, h("thead", {}, h("tr", {}, ...["", "folder", "kind", "scenario", "written"].map((head) => h("th", { scope: "col" }, head)))), h("tbody", {}, ...rows))),
  );
}

/** One result, or several runs side by side. */
export async function resultsPage(names: string[]): Promise<HTMLElement> {
  try {
    const content = await api.content<Content>(names);
    const tools = h("p", { class: "row" }, h("a", { href: "#/results" }, "all results"), names.length === 1 ? h("a", { href: api.reportUrl(names[0]!), download: "" }, "download report") : null);
    return h("div", {}, tools, page(content));
  } catch (error) {
    return h("section", { class: "empty" }, h("h2", {}, "These results cannot be shown"), ...mistakesOf(error).map(({ problem }) => h("p", {}, problem)));
  }
}
