// Comparisons and sweeps: started, watched and opened.

import { api, type About, type Json, type Mistake, type StudyState, type Table } from "./api";
import { h } from "./dom";
import { Form } from "./form";
import type { Keys } from "./keys";
import { mistakesOf } from "./live";
import { table } from "./page";
import { storedScenario } from "./presets";
import { Shapes, type Shape } from "./schema";
import { nameOf } from "./topology";

type Kind = "comparison" | "sweep";

/** How often a study in progress is looked at, in milliseconds. */
const LOOK_MS = 400;
const USUAL = ["reno", "hstcp", "scalable", "htcp", "bic", "cubic"];
/** Settings of a comparison that are no keys of a scenario. */
const OWN: [string, Shape][] = [
  ["flows", plain("number", "Flows of each run.")],
  ["repeat", plain("number", "Runs of each algorithm, each with another seed.")],
  ["start_within", plain("text", "Flows after the first start at random within this time.")],
];
const STATES: Record<string, string> = { running: "running", cancelling: "cancelling", saving: "saving", done: "finished", cancelled: "cancelled", failed: "failed" };

function plain(kind: Shape["kind"], description: string): Shape {
  return { kind, definition: "", optional: false, description, default: undefined, choices: [], variants: [], bare: false, fields: [], item: null, integer: kind === "number", minimum: undefined, maximum: undefined };
}

/** A list of values as it is typed: numbers where all are numbers. */
export function valuesOf(text: string): Json[] {
  const parts = text.split(",").map((part) => part.trim()).filter(Boolean);
  return parts.every((part) => Number.isFinite(Number(part))) ? parts.map(Number) : parts;
}

/** The keys of a scenario that a sweep can vary, as suggestions. */
function keysOf(value: Json | undefined, above = ""): string[] {
  if (value === null || typeof value !== "object") return [above];
  return Object.entries(value).flatMap(([name, inner]) => keysOf(inner as Json, Array.isArray(value) ? above : above ? `${above}.${name}` : name));
}

const duration = (seconds: number): string => (seconds < 90 ? `${Math.round(seconds)} s` : `${Math.round(seconds / 60)} min`);

/** The page for comparisons and sweeps. */
export class Studies {
  readonly element: HTMLElement;
  private readonly scenario: Shape;
  private readonly panel = h("form", { class: "panel", "aria-label": "Study", novalidate: true });
  private readonly general = h("div", { class: "errors", role: "alert" });
  private readonly stage = h("div", { class: "stage" });
  private kind: Kind = "comparison";
  private form: Form;
  private readonly algorithms = new Set(USUAL);
  private rows: { key: string; values: string }[] = [
    { key: "path.rtt", values: "20 ms, 82 ms, 160 ms" },
    { key: "flow.cc", values: "reno, htcp" },
  ];
  private repeat = 1;
  private watched: string | null = null;

  constructor(private readonly about: About) {
    this.scenario = new Shapes(about.schema).scenario;
    const { path, seed } = storedScenario();
    const { rate, rtt, buffer } = (path as Table | undefined) ?? { rate: "100 Mbit/s", rtt: "82 ms" };
    this.form = new Form({ path: { rate: rate!, rtt: rtt!, buffer: buffer ?? "100% bdp" }, duration: "120 s", seed: seed ?? 1, flows: 2, repeat: 5, start_within: "20 s" }, () => undefined);
    this.panel.addEventListener("submit", (event) => {
      event.preventDefault();
      void this.start();
    });
    this.element = h("div", { class: "explore" }, this.panel, this.stage);
    this.paintPanel();
    this.paintEmpty();
  }

  /** What single keys do here. */
  get keys(): Keys {
    const press = (id: string) => () => this.element.querySelector<HTMLElement>(`#${id}`)?.click();
    return { s: ["start the study", press("start-study")], x: ["cancel the study", press("cancel-study")] };
  }

  /** Whether nothing is watched. */
  get isIdle(): boolean {
    return this.watched === null;
  }

  /** Watches the newest study of the server. */
  async begin(): Promise<void> {
    const newest = (await api.studies().catch(() => []))[0];
    if (newest && this.watched === null) void this.watch(newest.id);
  }

  // ---- What is to be run ----

  private paintPanel(): void {
    const choose = (kind: Kind, text: string) => {
      const radio = h("input", { type: "radio", name: "kind", value: kind, checked: kind === this.kind });
      radio.addEventListener("change", () => {
        this.kind = kind;
        this.paintPanel();
        this.panel.querySelector<HTMLElement>("input[name=kind]:checked")?.focus();
      });
      return h("label", {}, radio, text);
    };
    const what = h("fieldset", { class: "choice" }, h("legend", {}, "What to run"), choose("comparison", "comparison"), choose("sweep", "sweep"));
    const button = h("button", { type: "submit", id: "start-study" }, `Start the ${this.kind}`);
    this.panel.replaceChildren(what, this.general, ...(this.kind === "comparison" ? this.comparison() : this.sweep()), button);
  }

  private comparison(): HTMLElement[] {
    const field = (name: string) => this.scenario.fields.find(([known]) => known === name)![1];
    const boxes = this.about.algorithms.map(({ name, title }) => {
      const box = h("input", { type: "checkbox", checked: this.algorithms.has(name) });
      box.addEventListener("change", () => (box.checked ? this.algorithms.add(name) : this.algorithms.delete(name)));
      return h("label", { title }, box, name);
    });
    const { form } = this;
    return [
      h("section", {}, h("fieldset", { class: "ticks" }, h("legend", {}, "Algorithms"), ...boxes)),
      h("section", {}, h("h2", {}, "Path"), h("div", { class: "fields" }, ...form.fields("path", field("path"), ["rate", "rtt", "buffer"]))),
      h("section", {}, h("h2", {}, "Runs"), h("div", { class: "fields" }, ...OWN.map(([name, shape]) => form.control(name, shape)), ...form.fields("", this.scenario, ["duration", "seed"]))),
    ];
  }

  private sweep(): HTMLElement[] {
    const document = storedScenario();
    const flows = ((document["flow"] as Table[] | undefined) ?? []).map((flow) => nameOf(flow["cc"]));
    const list = h("datalist", { id: "sweep-keys" }, ...[...new Set(["flow.cc", ...keysOf(document)])].map((key) => h("option", { value: key })));
    const rows = this.rows.map((row, number) => {
      const key = h("input", { type: "text", value: row.key, list: "sweep-keys", id: `sweep-key-${number}`, spellcheck: "false" });
      const values = h("input", { type: "text", value: row.values, id: `sweep-values-${number}`, spellcheck: "false" });
      key.addEventListener("input", () => (row.key = key.value.trim()));
      values.addEventListener("input", () => (row.values = values.value));
      const remove = h("button", { type: "button", class: "quiet", "aria-label": `Remove ${row.key}` }, "remove");
      remove.addEventListener("click", () => {
        this.rows.splice(number, 1);
        this.paintPanel();
      });
      return h("fieldset", { class: "item" }, h("legend", {}, `key ${number + 1}`), remove, h("div", { class: "field" }, h("label", { for: key.id }, "key"), key), h("div", { class: "field" }, h("label", { for: values.id }, "values, separated by commas"), values));
    });
    const more = h("button", { type: "button", class: "plain" }, "add a key");
    more.addEventListener("click", () => {
      this.rows.push({ key: "path.buffer", values: "20% bdp, 100% bdp" });
      this.paintPanel();
    });
    const repeat = h("input", { type: "text", inputmode: "numeric", id: "sweep-repeat", value: String(this.repeat) });
    repeat.addEventListener("input", () => (this.repeat = Number(repeat.value)));
    return [
      h("section", {}, h("h2", {}, "Scenario"), h("p", {}, h("strong", {}, String(document["name"] ?? "unnamed")), ` with ${flows.join(", ")}; ${String(document["duration"])}`), h("p", { class: "note" }, "This is the scenario of ", h("a", { href: "#/" }, "Explore"), ". All combinations of the values below are run.")),
      h("section", {}, h("h2", {}, "Keys and their values"), list, h("div", { class: "list" }, ...rows, more)),
      h("section", {}, h("div", { class: "field" }, h("label", { for: "sweep-repeat" }, "repeat: runs of each point, each with another seed"), repeat, h("span", {}, "Repeats differ only if something is random, such as a start within some seconds."))),
    ];
  }

  private async start(): Promise<void> {
    const sweep = { ...Object.fromEntries(this.rows.map(({ key, values }) => [key, valuesOf(values)])), repeat: this.repeat };
    const body = this.kind === "comparison" ? { kind: this.kind, cc: this.about.algorithms.map(({ name }) => name).filter((name) => this.algorithms.has(name)), ...this.form.document } : { kind: this.kind, document: { ...storedScenario(), sweep } };
    try {
      this.mistakes([]);
      const { id } = await api.startStudy(body as Table);
      history.replaceState(null, "", `#/study/${id}`);
      void this.watch(id);
      this.stage.scrollIntoView({ block: "nearest" });
    } catch (error) {
      this.mistakes(mistakesOf(error));
      this.panel.querySelector<HTMLElement>("[aria-invalid]")?.focus();
    }
  }

  private mistakes(mistakes: Mistake[]): void {
    const rest = this.kind === "comparison" ? this.form.show(mistakes) : mistakes;
    this.general.replaceChildren(...rest.map(({ key, problem }) => h("p", {}, key ? `${key}: ${problem}` : problem)));
  }

  // ---- What is run ----

  /** Watches a study until it ends. */
  async watch(id: string): Promise<void> {
    if (this.watched === id) return;
    this.watched = id;
    while (this.watched === id) {
      let study: StudyState;
      try {
        study = await api.study(id);
      } catch (error) {
        const [{ problem }] = mistakesOf(error) as [Mistake];
        const isGone = (error as { status?: number }).status !== 0;
        this.stage.replaceChildren(h("section", { class: "empty" }, h("h1", {}, isGone ? "No study at this address" : "The server does not respond"), h("p", {}, isGone ? problem : "Retrying.")));
        if (isGone) this.watched = null;
        await new Promise((done) => setTimeout(done, LOOK_MS));
        continue;
      }
      this.paintStudy(study);
      if (["done", "cancelled", "failed"].includes(study.state)) return;
      await new Promise((done) => setTimeout(done, LOOK_MS));
    }
  }

  private paintStudy(study: StudyState): void {
    const isGoing = study.state === "running" || study.state === "cancelling" || study.state === "saving";
    const hadFocus = document.activeElement?.id === "cancel-study";
    const say = (kind: string, ...parts: (HTMLElement | string)[]) => h("div", { class: `banner ${kind}`, role: "status" }, ...parts);
    const open = study.folder === null ? [] : [h("a", { href: `#/results/${study.folder}` }, "Results"), h("a", { href: api.reportUrl(study.folder), download: "" }, "Report")];
    const outcome = {
      done: () => say("good", h("strong", {}, "Finished."), h("span", {}, `Saved as ${study.folder}. ${study.text}`), ...open),
      cancelled: () => say("", h("strong", {}, "Cancelled."), h("span", {}, study.folder === null ? "Nothing was saved." : `The finished runs are in ${study.folder}.`), ...open),
      failed: () => say("bad", h("strong", {}, `The ${study.kind} failed.`), h("span", {}, study.text)),
    }[study.state as "done" | "cancelled" | "failed"]?.();
    const cancel = h("button", { type: "button", class: "plain", id: "cancel-study", onclick: () => void api.cancelStudy(study.id).then((now) => this.paintStudy(now)) }, "Cancel");
    const left = study.left_s === null ? "" : `, about ${duration(study.left_s)} left`;
    this.stage.replaceChildren(
      h(
        "section",
        { class: "runbar", "aria-label": "Study in progress" },
        h("h1", {}, study.name),
        isGoing ? cancel : "",
        h("span", { class: "state", "data-state": study.state, role: "status" }, STATES[study.state] ?? study.state),
        h("span", { class: "time" }, `${Math.floor(study.done)} of ${study.total} runs, ${duration(study.elapsed_s)}${left}`),
        h("progress", { "aria-label": "Runs done", max: study.total, value: study.done }),
      ),
      ...(outcome ? [outcome] : []),
      study.table ? table(study.table, study.name) : h("section", { class: "empty" }, h("h2", {}, "No run is done yet"), h("p", {}, "The table grows with each repeat.")),
    );
    if (hadFocus) this.stage.querySelector<HTMLElement>("#cancel-study")?.focus();
  }

  private paintEmpty(): void {
    this.stage.replaceChildren(
      h(
        "section",
        { class: "empty" },
        h("h1", {}, "Compare algorithms, or vary a scenario"),
        h("p", {}, "A comparison runs each algorithm on one path, several times with other seeds, and gives every metric with its 95 % interval."),
        h("p", {}, "A sweep runs the scenario of Explore at all combinations of some values, and can be plotted along each of them."),
        h("p", {}, "Both go on when this page is closed, and are in Results when they end."),
      ),
    );
  }
}
