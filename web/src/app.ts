// The web app: explore, results.

import "./style.css";
import "./app.css";
import { api, type About } from "./api";
import { h } from "./dom";
import { Explore } from "./explore";
import { mistakesOf } from "./live";
import { resultsList, resultsPage } from "./results";
import { isDark, setTheme } from "./theme";

const THEME = "elephan-theme";
const main = h("main", { class: "wide" });

function header(about: About): HTMLElement {
  const toggle = h("button", { type: "button", class: "quiet" }, "light / dark");
  toggle.addEventListener("click", () => {
    const theme = isDark() ? "light" : "dark";
    localStorage.setItem(THEME, theme);
    setTheme(theme);
  });
  const link = (to: string, text: string) => h("a", { href: to, class: "tab" }, text);
  return h("nav", { class: "bar", "aria-label": "Pages" }, h("strong", {}, "Elephan"), link("#/", "Explore"), link("#/results", "Results"), h("span", { class: "grow" }), h("span", { class: "version" }, about.version), toggle);
}

let explore: Explore | null = null;

async function show(about: About): Promise<void> {
  const [kind = "", ...rest] = location.hash.replace(/^#\//, "").split("/");
  const names = rest.map(decodeURIComponent);
  for (const tab of document.querySelectorAll(".tab")) {
    const here = tab.getAttribute("href") === (kind === "results" || kind === "compare" ? "#/results" : "#/");
    tab.toggleAttribute("aria-current", here);
  }
  if (kind === "results") main.replaceChildren(names.length ? await resultsPage([names.join("/")]) : await resultsList());
  else if (kind === "compare") main.replaceChildren(await resultsPage(names));
  else {
    explore ??= new Explore(about);
    if (kind === "run" && names[0]) explore.watch(names[0]);
    main.replaceChildren(explore.element);
  }
  if (document.activeElement === document.body) scrollTo(0, 0);
}

async function begin(): Promise<void> {
  const theme = localStorage.getItem(THEME);
  if (theme === "light" || theme === "dark") setTheme(theme);

  const about = await api.about();
  document.body.append(header(about), main);
  addEventListener("hashchange", () => void show(about));
  await show(about);
  document.documentElement.dataset.ready = "true";
}

begin().catch((error: unknown) => {
  document.body.append(h("main", {}, h("section", { class: "empty" }, h("h2", {}, "The server refused this page"), ...mistakesOf(error).map(({ problem }) => h("p", {}, problem)))));
});
