// The web app: explore, results.

import "./style.css";
import "./app.css";
import { api, mistakesOf, paragraphs, type About } from "./api";
import { button, empty, h } from "./dom";
import { Explore } from "./explore";
import { listen, type Keys } from "./keys";
import { ResultsList, resultsPage } from "./results";
import { isDark, setTheme } from "./theme";

const THEME = "elephan-theme";
const main = h("main", {});
const TABS: [string, string][] = [["/#/", "Explore"], ["/#/results", "Results"]];

/** The tab of each kind of address. */
const PAGES: Record<string, string> = { "": "/#/", run: "/#/", results: "/#/results", compare: "/#/results" };

function toggleTheme(): void {
  const theme = isDark() ? "light" : "dark";
  localStorage.setItem(THEME, theme);
  setTheme(theme);
}

function header(about: About, help: () => void): HTMLElement {
  return h(
    "nav",
    { class: "bar", "aria-label": "Pages" },
    h("strong", {}, "Elephan"),
    ...TABS.map(([to, text]) => h("a", { href: to, class: "tab" }, text)),
    h("span", { class: "grow" }),
    h("span", { class: "version" }, about.version),
    button("?", "quiet", help, { "aria-label": "Keyboard shortcuts", title: "Keyboard shortcuts" }),
    button("◐", "quiet", toggleTheme, { "aria-label": "light / dark", title: "light / dark" }),
  );
}

let explore: Explore | null = null;
/** What single keys do on the page that is shown. */
let keys: Keys = {};

function unknown(address: string): HTMLElement {
  return empty("h1", "No page at this address", h("code", {}, address), h("p", {}, ...TABS.map(([to, text]) => h("a", { href: to, class: "chip" }, text))));
}

async function show(about: About): Promise<void> {
  const [kind = "", ...rest] = location.hash.replace(/^#\/?/, "").split("/");
  const names = rest.map((name) => decodeURIComponent(name));
  for (const tab of document.querySelectorAll(".tab")) {
    const here = tab.getAttribute("href") === (location.pathname === "/" && PAGES[kind]);
    if (here) tab.setAttribute("aria-current", "page");
    else tab.removeAttribute("aria-current");
  }
  keys = {};
  if (location.pathname !== "/") main.replaceChildren(unknown(location.pathname));
  else if (kind === "results" && names.length > 0) main.replaceChildren(await resultsPage([names.join("/")]));
  else if (kind === "results") {
    const results = await api.results();
    const list = results.length > 0 ? new ResultsList(results) : null;
    keys = list?.keys ?? {};
    main.replaceChildren(list?.element ?? empty("h1", "No results yet", "This list has the runs that are started here, and what commands such as elephan compare and elephan sweep write.", h("a", { href: "#/", class: "chip" }, "Explore")));
  } else if (kind === "compare" && names.length > 0) main.replaceChildren(await resultsPage(names));
  else if ((kind === "" && names.length === 0) || (kind === "run" && names.length === 1)) {
    explore ??= new Explore(about);
    keys = explore.keys;
    if (names[0]) explore.watch(names[0]);
    else void explore.begin();
    main.replaceChildren(explore.element);
  } else main.replaceChildren(unknown(location.hash));
  if (document.activeElement === document.body) scrollTo(0, 0);
}

async function begin(): Promise<void> {
  const theme = localStorage.getItem(THEME);
  if (theme === "light" || theme === "dark") setTheme(theme);

  const about = await api.about();
  const go = (to: string) => () => (location.href = to);
  const help = listen({ e: ["Explore", go("/#/")], r: ["Results", go("/#/results")], t: ["light or dark", toggleTheme] }, () => keys);
  document.body.prepend(header(about, help.open), main);
  addEventListener("hashchange", () => void show(about));
  await show(about);
  document.documentElement.dataset.ready = "true";
}

begin().catch((error: unknown) => {
  document.body.append(h("main", {}, empty("h1", "The server refused this page", ...paragraphs(mistakesOf(error)))));
});
