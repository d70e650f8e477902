// Creates elements.

type Child = Node | string | number | null | undefined | false;
type Attributes = Record<string, unknown>;

/** An element with attributes (`onX` are listeners; `class` and the others are attributes) and children. */
export function h<K extends keyof HTMLElementTagNameMap>(
  tag: K,
  attributes: Attributes = {},
  ...children: Child[]
): HTMLElementTagNameMap[K] {
  const element = document.createElement(tag);
  give(element, attributes);
  element.append(...children.filter((child) => child !== null && child !== undefined && child !== false).map((child) => (child instanceof Node ? child : String(child))));
  return element;
}

/** An SVG element. */
export function s(tag: string, attributes: Attributes = {}, ...children: (Node | string)[]): SVGElement {
  const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
  give(element, attributes);
  element.append(...children);
  return element;
}

function give(element: Element, attributes: Attributes): void {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === undefined || value === null || value === false) continue;
    if (name.startsWith("on") && typeof value === "function") {
      element.addEventListener(name.slice(2).toLowerCase(), value as EventListener);
    } else if (value === true) {
      element.setAttribute(name, "");
    } else {
      element.setAttribute(name, String(value));
    }
  }
}

/** A wide element that scrolls, and a hint while a part of it is out of sight on the right. */
export function scrolling(label: string, inner: HTMLElement): HTMLElement[] {
  const box = h("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": label }, inner);
  const hint = h("p", { class: "hint", hidden: true, "aria-hidden": "true" }, "scroll for more columns →");
  const look = () => {
    const isCut = box.scrollWidth > box.clientWidth + 1;
    box.classList.toggle("cut", isCut && box.scrollLeft + box.clientWidth < box.scrollWidth - 2);
    hint.hidden = !isCut;
  };
  box.addEventListener("scroll", look, { passive: true });
  new ResizeObserver(look).observe(box);
  return [box, hint];
}

/** A button; `kind` is `plain`, `quiet`, or nothing for what a page is for. */
export const button = (text: string, kind: string, act: () => unknown, more: Attributes = {}): HTMLButtonElement => h("button", { type: "button", class: kind || undefined, onclick: act, ...more }, text);

/** A list to choose from: values, with texts, titles and groups if they have any. */
export function choose(options: (string | [value: string, text: string, title?: string, group?: string])[], current: string, act: (value: string) => void, more: Attributes = {}): HTMLSelectElement {
  const select = h("select", more);
  for (const option of options) {
    const [value, text, title, group] = typeof option === "string" ? [option, option] : option;
    const last = select.lastElementChild;
    const place = !group ? select : last instanceof HTMLOptGroupElement && last.label === group ? last : select.appendChild(h("optgroup", { label: group }));
    place.append(h("option", { value, title, selected: value === current }, text));
  }
  select.addEventListener("change", () => act(select.value));
  return select;
}

/** A button that downloads data of a figure or a table. */
export const csvButton = (title: string, name: string, rows: () => Cell[][]): HTMLButtonElement => button("CSV", "quiet", () => download(`${fileName(name)}.csv`, csv(rows())), { "aria-label": `${title}: data as CSV` });

/** What happened, on a line: `good`, `bad`, or neither. */
export const banner = (kind: string, ...parts: (Node | string)[]): HTMLElement => h("div", { class: `banner ${kind}`, role: "status" }, ...parts);

/** A page, or a part of one, that has nothing but a text. */
export const empty = (title: "h1" | "h2", text: string, ...parts: (Node | string)[]): HTMLElement => h("section", { class: "empty" }, h(title, {}, text), ...parts.map((part) => (part instanceof Node ? part : h("p", {}, part))));

/** Offers a text as a file to download. */
export function download(name: string, text: string, type = "text/csv"): void {
  const url = URL.createObjectURL(new Blob([text], { type }));
  h("a", { href: url, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(url), 1000);
}

type Cell = string | number | null | undefined;

/** Lines of values separated by commas (RFC 4180). */
export function csv(rows: Cell[][]): string {
  const cell = (value: Cell) => {
    const text = String(value ?? "");
    return /[",\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
  };
  return rows.map((row) => row.map(cell).join(",")).join("\r\n") + "\r\n";
}

/** A number for readers: four digits, without an exponent if possible. */
export function number(value: number | null | undefined, digits = 4): string {
  if (value === null || value === undefined || !Number.isFinite(value)) return "–";
  if (value === 0) return "0";
  const size = Math.abs(value);
  if (size >= 1e7 || size < 1e-4) return value.toExponential(2).replace("e+", "e");
  return size >= 10 ** (digits - 1) ? Math.round(value).toLocaleString("en").replaceAll(",", "\u00a0") : String(+value.toPrecision(digits));
}

/** A valid name of a file. */
export function fileName(text: string): string {
  return text.replace(/[^\w.+-]+/g, "-").replace(/^[-.]+|[-.]+$/g, "") || "data";
}
