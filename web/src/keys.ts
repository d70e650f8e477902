// Keyboard shortcuts, and the list of them that `?` opens.

import { button, h } from "./dom";

/** What single keys do: by key, its meaning and its effect. */
export type Keys = Record<string, [string, () => void]>;

const STORED = "elephan-keys";

const CHARTS: [string, string][] = [
  ["← →", "move along a chart"],
  ["+ −", "zoom in, zoom out"],
  ["0", "show everything"],
];

/** Listens to keys: those of every page, and those of the page that is shown. */
export function listen(everywhere: Keys, here: () => Keys): { open: () => void } {
  const list = h("div", { class: "keys" });
  const on = h("input", { type: "checkbox", id: "keys-on", checked: localStorage.getItem(STORED) !== "off" });
  on.addEventListener("change", () => localStorage.setItem(STORED, on.checked ? "on" : "off"));
  const close = button("close", "plain", () => dialog.close());
  const dialog = h("dialog", { "aria-labelledby": "keys-title" }, h("h2", { id: "keys-title" }, "Keyboard shortcuts"), list, h("p", { class: "field flag" }, h("label", { for: "keys-on" }, "single keys act"), on), close);
  document.body.append(dialog);
  const rows = (title: string, entries: [string, string][]) => [h("h3", {}, title), h("dl", {}, ...entries.flatMap(([key, meaning]) => [h("dt", {}, h("kbd", {}, key)), h("dd", {}, meaning)]))];
  const named = (keys: Keys): [string, string][] => Object.entries(keys).map(([key, [meaning]]) => [key, meaning]);
  const open = () => {
    const own = named(here());
    list.replaceChildren(...rows("Everywhere", [...named(everywhere), ["?", "this list"]]), ...(own.length > 0 ? rows("On this page", own) : []), ...rows("In a chart", CHARTS));
    dialog.showModal();
  };
  addEventListener("keydown", (event) => {
    const target = event.target as HTMLElement;
    const isTyping = target.matches("select, textarea, input:not([type=checkbox], [type=range])");
    if (isTyping || dialog.open || event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key === "?") open();
    else {
      const act = on.checked ? (here()[event.key] ?? everywhere[event.key]) : undefined;
      if (!act) return;
      act[1]();
    }
    event.preventDefault();
  });
  return { open };
}
