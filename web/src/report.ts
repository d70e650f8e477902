// The script of a report: a single file that opens anywhere, without a network.

import "./style.css";
import type { Content } from "./content";
import { button, h } from "./dom";
import { page } from "./page";
import { isDark, setTheme } from "./theme";

const content = JSON.parse(document.getElementById("content")!.textContent!) as Content;
const toggle = button("light / dark", "quiet", () => setTheme(isDark() ? "light" : "dark"));
document.body.append(
  h("nav", { class: "bar" }, h("strong", {}, "Elephan"), h("span", {}, `a ${content.kind}`), h("span", { class: "grow" }), button("print", "quiet", () => print()), toggle),
  h("main", {}, page(content)),
);
document.documentElement.dataset.ready = "true";
