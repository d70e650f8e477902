// Controls made from the scenario's schema. A control edits one value of the document, and shows the errors of that value.

import type { Json, Mistake, Table } from "./api";
import { button, choose, h } from "./dom";
import type { Shape } from "./schema";

const UNITS: Record<string, number> = {
  ...{ ps: 1e-12, ns: 1e-9, us: 1e-6, µs: 1e-6, ms: 1e-3, s: 1, min: 60, h: 3600 },
  ...Object.fromEntries(["bit/s", "bps"].flatMap((unit) => ["", "k", "M", "G", "T"].map((prefix, k) => [prefix + unit, 1e3 ** k]))),
  ...{ "% bdp": 1, "%bdp": 1 },
};

/** The value of a time in seconds, of a rate in bit/s, or of a share of the bandwidth-delay product in percent; null for other texts. */
function quantity(text: string): number | null {
  const [, amount = "", unit = ""] = /^([0-9._]+) ?(.+)$/.exec(text.trim()) ?? [];
  return unit in UNITS ? Number(amount.replaceAll("_", "")) * UNITS[unit]! : null;
}

/** The range of a slider, on a logarithmic scale, and the units in which it writes a value, from the smallest on. */
interface Range {
  from: number;
  to: number;
  units: string[];
}

const RANGES: Record<string, Range> = {
  Rate: { from: 1e6, to: 1e10, units: [" Mbit/s", " Gbit/s"] },
  rtt: { from: 1e-3, to: 1, units: [" ms", " s"] },
  duration: { from: 1, to: 600, units: [" s"] },
  Buffer: { from: 1, to: 400, units: ["% bdp"] },
};

/** A value of a slider as a scenario file writes it. */
function written(value: number, units: string[]): string {
  const unit = units.filter((unit) => value >= UNITS[unit.trim()]!).at(-1) ?? units[0]!;
  const amount = value / UNITS[unit.trim()]!;
  return +amount.toPrecision(amount >= 100 ? 3 : 2) + unit;
}

const STEPS = 200;

/** The name of what a scenario chooses, bare or with parameters. */
export const nameOf = (value: Json | undefined): string => (value !== null && typeof value === "object" && !Array.isArray(value) ? String((value as Table)["name"] ?? "") : String(value ?? ""));

/** What can be chosen by name, as options. Of those with groups, one without is another name, which is there only where it is the current one. */
export function namedOptions(variants: { name: string; title: string; group?: string | undefined }[], current: string): [string, string, string, string?][] {
  const isGrouped = variants.some(({ group }) => group);
  return variants.filter(({ name, group }) => !isGrouped || group || name === current).map(({ name, title, group }) => [name, isGrouped ? `${name}: ${title}` : name, title, group]);
}

// Labels name their controls by ids, which no two forms of a page share.
let labelled = 0;

/** A document, its controls, and its errors. */
export class Form {
  private readonly errors = new Map<string, { box: HTMLElement; input: HTMLElement }>();

  constructor(
    public document: Table,
    private readonly changed: () => void,
  ) {}

  /** The value at a key such as `flow.0.cc`. */
  get(key: string): Json | undefined {
    return key.split(".").reduce<Json | undefined>((value, name) => (value !== null && typeof value === "object" ? (value as Table)[name] : undefined), this.document);
  }

  /** Sets a value; undefined removes it, and any tables that become empty. */
  set(key: string, value: Json | undefined): void {
    const names = key.split(".");
    const last = names.pop()!;
    let place: Table = this.document;
    for (const name of names) {
      if (place[name] === undefined || place[name] === null || typeof place[name] !== "object") place[name] = {};
      place = place[name] as Table;
    }
    if (value === undefined) delete place[last];
    else place[last] = value;
    if (value === undefined && names.length > 0 && !Array.isArray(place) && Object.keys(place).length === 0) this.set(names.join("."), undefined);
    this.changed();
  }

  /** Shows errors at their controls; returns those that have no control. */
  show(mistakes: Mistake[]): Mistake[] {
    for (const { box, input } of this.errors.values()) {
      box.textContent = "";
      input.removeAttribute("aria-invalid");
    }
    return mistakes.filter(({ key, problem }) => {
      // An error in a part of a value that one control edits as a whole belongs to that control.
      const names = key.split(".");
      while (names.length > 0 && !this.errors.has(names.join("."))) names.pop();
      const place = names.length > 0 ? this.errors.get(names.join(".")) : undefined;
      if (!place?.input.isConnected) return true;
      place.box.textContent = [place.box.textContent, names.join(".") === key ? problem : `${key}: ${problem}`].filter(Boolean).join("\n");
      place.input.setAttribute("aria-invalid", "true");
      place.input.closest("details")?.setAttribute("open", "");
      return false;
    });
  }

  private labelled(key: string, title: string, description: string, input: HTMLElement, extra: HTMLElement | null = null): HTMLElement {
    const id = `field-${++labelled}`;
    const box = h("span", { class: "error", id: `${id}-error`, role: "alert" });
    input.id = id;
    input.setAttribute("aria-describedby", box.id);
    this.errors.set(key, { box, input });
    return h("div", { class: "field", "data-key": key, title: description }, h("label", { for: id }, title), input, extra, box);
  }

  /** The control of a value. */
  control(key: string, shape: Shape, title = key.split(".").at(-1)!.replaceAll("_", " ")): HTMLElement {
    switch (shape.kind) {
      case "flag":
        return this.flag(key, shape, title);
      case "choice":
        return this.choice(key, shape, title);
      case "named":
        return this.named(key, shape, title);
      case "table":
        return this.table(key, shape, title);
      case "list":
        return shape.item?.kind === "table" ? this.tables(key, shape.item, title, shape.description) : this.json(key, shape, title);
      case "number":
      case "quantity":
      case "text":
        return this.line(key, shape, title);
      default:
        return this.json(key, shape, title);
    }
  }

  private line(key: string, shape: Shape, title: string): HTMLElement {
    const value = this.get(key);
    if (value !== undefined && typeof value === "object") return this.json(key, shape, title);
    const placeholder = shape.default === undefined || shape.default === null ? (shape.optional ? "none" : "") : String(shape.default);
    const input = h("input", { type: "text", value: value === undefined ? "" : String(value), placeholder, spellcheck: "false", autocomplete: "off", inputmode: shape.kind === "number" ? "decimal" : undefined });
    const range = RANGES[title] ?? RANGES[shape.definition];
    const slider = range && !/reverse|access/.test(key) ? this.slider(range, input, title) : null;
    input.addEventListener("input", () => {
      const text = input.value.trim();
      const numeric = shape.kind === "number" && text !== "" && Number.isFinite(Number(text));
      this.set(key, text === "" ? undefined : numeric ? Number(text) : text);
    });
    return this.labelled(key, title, shape.description, input, slider);
  }

  private slider(range: Range, input: HTMLInputElement, title: string): HTMLElement {
    const span = Math.log(range.to / range.from);
    const slider = h("input", { type: "range", min: 0, max: STEPS, step: 1, "aria-label": `${title}, slider` });
    const place = () => {
      const value = quantity(input.value || input.placeholder);
      if (value !== null && value > 0) slider.value = String(Math.round((Math.log(value / range.from) / span) * STEPS));
      slider.setAttribute("aria-valuetext", input.value || input.placeholder);
    };
    place();
    input.addEventListener("input", place);
    slider.addEventListener("input", () => {
      input.value = written(range.from * Math.exp((Number(slider.value) / STEPS) * span), range.units);
      slider.setAttribute("aria-valuetext", input.value);
      input.dispatchEvent(new Event("input"));
    });
    return slider;
  }

  private flag(key: string, shape: Shape, title: string): HTMLElement {
    if (shape.optional && typeof shape.default !== "boolean") {
      const select = choose([["", "none"], "true", "false"], String(this.get(key) ?? ""), (value) => this.set(key, value === "" ? undefined : value === "true"));
      return this.labelled(key, title, shape.description, select);
    }
    const input = h("input", { type: "checkbox", checked: (this.get(key) ?? shape.default) === true });
    input.addEventListener("change", () => this.set(key, input.checked === shape.default ? undefined : input.checked));
    const field = this.labelled(key, title, shape.description, input);
    field.classList.add("flag");
    return field;
  }

  private choice(key: string, shape: Shape, title: string): HTMLElement {
    const none: [string, string][] = shape.optional && shape.default === undefined ? [["", "none"]] : [];
    const select = choose([...none, ...shape.choices], String(this.get(key) ?? shape.default ?? ""), (value) => this.set(key, value || undefined));
    return this.labelled(key, title, shape.description, select);
  }

  private named(key: string, shape: Shape, title: string): HTMLElement {
    const standard = nameOf(shape.default as Json | undefined);
    const current = nameOf(this.get(key)) || standard;
    const none: [string, string][] = shape.optional && !standard ? [["", "none"]] : [];
    const variants = namedOptions(shape.variants, current);
    const parameters = h("div", { class: "parameters" });
    const draw = (chosen: string) => {
      const variant = shape.variants.find((one) => one.name === chosen);
      parameters.replaceChildren();
      if (!variant || variant.fields.length === 0) return;
      const controls = variant.fields.map(([name, inner]) => this.control(`${key}.${name}`, inner));
      const needed = variant.fields.some(([, inner]) => !inner.optional);
      const value = this.get(key);
      const open = needed || (typeof value === "object" && Object.keys(value ?? {}).length > 1);
      parameters.append(h("details", { open }, h("summary", {}, `parameters of ${variant.name}`), h("div", { class: "fields" }, ...controls)));
    };
    const select = choose([...none, ...variants], current, (name) => {
      this.set(key, name === "" ? undefined : shape.bare ? name : { name });
      draw(name);
    });
    // Setting a parameter turns the name into a table, before the listener of its control.
    const widen = () => typeof this.get(key) === "object" || this.set(key, { name: select.value });
    parameters.addEventListener("input", widen, true);
    draw(current);
    return h("div", { class: "named" }, this.labelled(key, title, shape.description, select), parameters);
  }

  private table(key: string, shape: Shape, title: string): HTMLElement {
    const box = h("span", { class: "error", role: "alert" });
    const details = h("details", {}, h("summary", { title: shape.description }, title), box, h("div", { class: "fields" }, ...this.others(key, shape, [])));
    this.errors.set(key, { box, input: details });
    return details;
  }

  /** A value without a control of its own is edited as JSON. */
  private json(key: string, shape: Shape, title: string): HTMLElement {
    const value = this.get(key);
    const input = h("input", { type: "text", value: value === undefined ? "" : JSON.stringify(value), placeholder: shape.default === undefined ? "none" : JSON.stringify(shape.default), spellcheck: "false" });
    input.addEventListener("input", () => {
      try {
        this.set(key, input.value.trim() === "" ? undefined : (JSON.parse(input.value) as Json));
      } catch {
        this.set(key, input.value);
      }
    });
    return this.labelled(key, title, `${shape.description} Enter as JSON.`, input);
  }

  private tables(key: string, item: Shape, title: string, description: string): HTMLElement {
    const list = this.list(key, (_, number) => `${title} ${number + 1}`, (inner) => [h("div", { class: "fields" }, ...this.others(inner, item, []))], () => ({}), "add one");
    return h("details", { open: ((this.get(key) as Json[] | undefined) ?? []).length > 0 }, h("summary", { title: description }, title), list);
  }

  /** Some fields of a table, by name. */
  fields(prefix: string, shape: Shape, names: string[]): HTMLElement[] {
    const known = new Map(shape.fields);
    return names.filter((name) => known.has(name)).map((name) => this.control(prefix ? `${prefix}.${name}` : name, known.get(name)!));
  }

  /** All fields of a table except some. */
  others(prefix: string, shape: Shape, but: string[]): HTMLElement[] {
    return shape.fields.filter(([name]) => !but.includes(name)).map(([name, inner]) => this.control(prefix ? `${prefix}.${name}` : name, inner));
  }

  /** A list of tables: `draw` makes the controls of one, `fresh` a new one. */
  list(key: string, title: (value: Json, number: number) => string, draw: (key: string) => HTMLElement[], fresh: () => Json, add: string): HTMLElement {
    const element = h("div", { class: "list" });
    const paint = () => {
      const values = (this.get(key) as Json[] | undefined) ?? [];
      element.replaceChildren(
        ...values.map((value, number) => {
          const remove = button("remove", "quiet", () => {
            this.set(key, values.filter((_, other) => other !== number));
            paint();
          });
          const legend = h("legend", {});
          const item = h("fieldset", { class: "item" }, legend, remove, ...draw(`${key}.${number}`));
          // The title names what is chosen within. The listeners of the controls run first.
          const follow = () => {
            legend.textContent = title(((this.get(key) as Json[] | undefined) ?? [])[number] ?? value, number);
            remove.setAttribute("aria-label", `Remove ${legend.textContent}`);
          };
          follow();
          item.addEventListener("input", follow);
          item.addEventListener("change", follow);
          return item;
        }),
      );
      const more = button(add, "plain", () => {
        this.set(key, [...values, fresh()]);
        paint();
        element.querySelector<HTMLElement>("fieldset:last-of-type select, fieldset:last-of-type input")?.focus();
      });
      const box = h("span", { class: "error", role: "alert" });
      this.errors.set(key, { box, input: element });
      element.append(box, more);
    };
    paint();
    return element;
  }
}
