// Starts a run, watches it, and changes it.

import { api, mistakesOf, paragraphs, type About, type Json, type Mistake, type Table } from "./api";
import { banner, button, choose, download, empty, fileName, h } from "./dom";
import { Form, namedOptions, nameOf } from "./form";
import { LiveRun, type Connection } from "./live";
import { tiles, updateTiles } from "./page";
import { PRESETS } from "./presets";
import { Shapes, type Shape } from "./schema";
import { Linked, TimeChart } from "./timechart";
import { Topology } from "./topology";

/** The scenario that was edited last, in the storage of the browser. */
const STORED = "elephan-scenario";
const SPEEDS: [string, string][] = [["1", "real time"], ["2", "2 ×"], ["5", "5 ×"], ["10", "10 ×"], ["50", "50 ×"], ["0", "as fast as possible"]];
/** Shortest time between two updates of the figures and of the drawing, in milliseconds: more cannot be read. */
const FIGURES_MS = 120;

const copy = (value: Table): Table => JSON.parse(JSON.stringify(value)) as Table;

/** The page for exploring. */
export class Explore {
  readonly element: HTMLElement;
  private readonly scenario: Shape;
  private form!: Form;
  private readonly controls = h("form", { class: "panel", "aria-label": "Scenario", novalidate: true });
  private readonly general = h("div", { class: "errors", role: "alert" });
  private readonly bar = h("section", { class: "runbar", "aria-label": "Run" });
  /** A lost connection, or a change that was refused; and how the run ended. */
  private readonly notice = h("div", {});
  private readonly outcome = h("div", {});
  private readonly figures = tiles([]);
  private readonly area = h("div", { class: "charts" });
  private readonly going = h("div", { class: "going" });
  private run: LiveRun | null = null;
  private charts: TimeChart[] = [];
  private linked = new Linked();
  private speed = "10";
  private checking: ReturnType<typeof setTimeout> | undefined;
  private drawn = "";
  private linkForm: { shown: string; element: HTMLElement } | null = null;
  private linkChosen = "";
  private topology = new Topology();
  private painted = 0;
  private isExample = false;

  constructor(private readonly about: About) {
    this.scenario = new Shapes(about.schema, about.algorithms).scenario;
    const stored = localStorage.getItem(STORED);
    this.load(stored === null ? copy(PRESETS[0]!.document) : (JSON.parse(stored) as Table));
    this.controls.addEventListener("submit", (event) => {
      event.preventDefault();
      void this.start();
    });
    this.element = h(
      "div",
      { class: "explore" },
      this.controls,
      h("div", { class: "stage" }, this.going, this.bar, this.notice, this.outcome, h("h2", { class: "unseen" }, "Figures and charts"), h("div", { class: "live" }, this.figures), this.area),
    );
    this.paintBar();
    void this.listGoing();
    setInterval(() => document.hidden || !this.element.isConnected || void this.listGoing(), 4000);
  }

  // ---- The scenario ----

  private load(document: Table): void {
    this.form = new Form(document, () => this.edited());
    this.paintControls();
    this.edited();
  }

  private edited(): void {
    localStorage.setItem(STORED, JSON.stringify(this.form.document));
    clearTimeout(this.checking);
    this.checking = setTimeout(() => void api.check(this.form.document).then(() => this.showMistakes([]), this.refused), 200);
  }

  private showMistakes(mistakes: Mistake[]): void {
    this.general.replaceChildren(...paragraphs(this.form.show(mistakes)));
  }

  private readonly refused = (error: unknown): void => this.showMistakes(mistakesOf(error));

  private paintControls(): void {
    const { form, scenario } = this;
    const field = (name: string) => scenario.fields.find(([known]) => known === name)![1];
    const preset = choose([...PRESETS.map((one, k): [string, string] => [String(k), one.name]), ["", "choose…"]], "", (k) => k !== "" && this.load(copy(PRESETS[+k]!.document)), { id: "topology" });
    const split = (key: string, shape: Shape, first: string[], more: string) => [
      h("div", { class: "fields" }, ...form.fields(key, shape, first)),
      h("details", {}, h("summary", {}, more), h("div", { class: "fields" }, ...form.others(key, shape, first))),
    ];
    const links = () =>
      form.list(
        "link",
        (value) => `link ${String((value as Table)["name"] ?? "")}`,
        (key) => split(key, field("link").item!, ["rate", "delay", "buffer"], "more"),
        () => ({ name: "new", from: "a", to: "b", rate: "100 Mbit/s", delay: "10 ms" }),
        "add a link",
      );
    const flows = form.list(
      "flow",
      (value, number) => `flow ${number + 1}: ${nameOf((value as Table)["cc"])}`,
      (key) => split(key, field("flow").item!, ["cc"], "more flow settings"),
      () => copy(((form.get("flow") as Json[] | undefined)?.at(-1) as Table | undefined) ?? { cc: "reno" }),
      "add a flow",
    );
    const section = (title: string, ...children: HTMLElement[]) => h("section", {}, h("h2", {}, title), ...children);
    const known = ["path", "flow", "link", "duration", "seed", "name", "sweep", "engine", "kernel", ...(form.get("event") === undefined ? ["event"] : [])];
    this.controls.replaceChildren(
      h("div", { class: "opening" }, h("div", { class: "field" }, h("label", { for: "topology" }, "start from"), preset), this.opener()),
      this.general,
      form.get("path") !== undefined ? section("Path", ...split("path", field("path"), ["rate", "rtt", "buffer", "queue", "loss"], "more path settings")) : section("Links", links()),
      section("Flows", flows),
      section("Run", h("div", { class: "fields" }, ...form.fields("", scenario, ["duration", "seed", "name"])), ...form.others("", scenario, known)),
    );
  }

  private opener(): HTMLElement {
    const file = h("input", { type: "file", accept: ".toml,.json,.txt", class: "hidden", "aria-label": "Scenario file" });
    file.addEventListener("change", async () => {
      const chosen = file.files?.[0];
      if (chosen) await api.open(await chosen.text()).then(({ document }) => this.load(document), this.refused);
      file.value = "";
    });
    return h("span", {}, button("open a file", "plain", () => file.click()), file);
  }

  // ---- The run ----

  private async start(): Promise<void> {
    try {
      const state = await api.start(this.form.document, Number(this.speed));
      this.watch(state.id);
      history.replaceState(null, "", `#/run/${state.id}`);
    } catch (error) {
      this.refused(error);
      this.controls.querySelector<HTMLElement>("[aria-invalid]")?.focus();
    }
  }

  /** Shows the newest run of this server, or an example if it has none: a page without a run has nothing to look at. */
  async begin(): Promise<void> {
    if (this.run) return;
    this.paintMessage("Loading", "The newest run of this server, or an example.");
    try {
      const newest = (await api.runs())[0];
      const run = newest ?? (await api.start(PRESETS[0]!.document, 0, false));
      if (this.run === null) this.watch(run.id, run.is_saved);
    } catch (error) {
      this.paintMessage("No run yet", "Choose a path and flows, and press Start.", ...paragraphs(mistakesOf(error)));
    }
  }

  /** Watches a run of the server from its beginning. A run that is not saved is the example. */
  watch(id: string, isSaved = true): void {
    if (this.run?.id === id) return;
    this.run?.close();
    this.notice.replaceChildren();
    this.drawn = "";
    this.linkChosen = "";
    this.isExample = !isSaved;
    this.linked = new Linked();
    this.charts = [];
    this.topology = new Topology();
    updateTiles(this.figures, []);
    this.run = new LiveRun(
      id,
      this.about,
      () => this.moved(),
      (state) => this.connection(state),
    );
    this.paintMessage("Loading", "Waiting for the run's first samples.");
    this.paintBar();
    void this.listGoing();
  }

  private connection(state: Connection): void {
    this.notice.replaceChildren();
    // What is known of the run is as old as the last contact.
    if (state === "good") this.paintBar();
    else for (const pill of this.bar.querySelectorAll<HTMLElement>(".state")) Object.assign(pill, { textContent: "no contact" }).dataset["state"] = "lost";
    if (state === "lost") this.notice.append(banner("bad", "The server does not respond. Retrying; the data received so far stays here."));
    if (state === "shut") this.notice.append(banner("bad", "The server was restarted. Open the address that it printed; the data received so far stays here."));
    if (state === "unknown") {
      this.run?.close();
      this.run = null;
      this.paintBar();
      this.paintMessage("No run at this address", "The server keeps the last few of its runs. Results has those that were saved.", h("a", { href: "#/results" }, "Results"));
    }
    if (state === "restarted") {
      const again = button("repeat the run", "", () => {
        if (this.run?.plan) this.load(copy(this.run.plan.document));
        void api.about().then((about) => {
          Object.assign(this.about, about);
          void this.start();
        });
      });
      this.notice.append(banner("bad", h("span", {}, this.run!.text), again));
    }
  }

  private moved(): void {
    const run = this.run!;
    if (run.plan === null) return;
    this.linked.extent = [0, run.plan.duration_s];
    const data = run.charts();
    if (this.charts.length === 0) {
      this.charts = data.map((chart) => new TimeChart(chart, this.linked, run.plan!.name));
      this.area.replaceChildren(this.topology.element, ...this.charts.map((chart) => chart.element));
    } else {
      this.charts.forEach((chart, k) => chart.update(data[k]!));
    }
    if (run.isOver || performance.now() - this.painted >= FIGURES_MS) {
      this.painted = performance.now();
      updateTiles(this.figures, run.figures());
      this.topology.update(run.plan, run.moment());
    }
    const shown = JSON.stringify([run.state, run.speed, run.folder, run.plan.document, run.present(this.linkChosen || run.linkNames[0] || "")]);
    if (shown !== this.drawn) {
      this.drawn = shown;
      this.paintBar();
      void this.listGoing();
    }
    this.progress();
  }

  private progress(): void {
    const run = this.run;
    const bar = this.bar.querySelector("progress");
    const text = this.bar.querySelector(".time");
    if (!run?.plan || !bar || !text) return;
    bar.max = run.plan.duration_s;
    bar.value = run.time;
    text.textContent = `${run.time.toFixed(1)} s of ${run.plan.duration_s} s`;
  }

  private paintBar(): void {
    const run = this.run;
    // Until its first message, nothing is known of a run.
    const isKnown = run !== null && run.plan !== null;
    const active = isKnown && (run.state === "running" || run.state === "paused");
    const speeds = choose(SPEEDS, this.speed, (speed) => {
      this.speed = speed;
      if (active) void this.attempt(api.control(run.id, { speed: Number(speed) }));
    }, { "aria-label": "Speed" });
    const focused = document.activeElement instanceof HTMLElement && this.bar.contains(document.activeElement) ? document.activeElement.textContent : null;
    const parts = [
      h("h1", {}, run?.plan?.name || "Explore"),
      button("Start", active ? "plain" : "", () => this.start(), { id: "start" }),
      active && button(run.state === "paused" ? "Resume" : "Pause", "", () => this.attempt(api.control(run.id, { pause: run.state !== "paused" })), { id: "pause" }),
      active && button("Cancel", "plain", () => this.attempt(api.control(run.id, { cancel: true })), { id: "cancel" }),
      speeds,
      h("span", { class: "state", "data-state": isKnown ? run.state : "none", role: "status" }, isKnown ? (run.state === "done" ? "finished" : run.state) : run ? "loading" : ""),
      isKnown && h("span", { class: "time" }),
      h("span", { class: "grow" }),
      button("Export scenario", "quiet", () => this.exportFile(), { id: "export", title: run ? "The scenario file that repeats this run" : "The scenario as a file" }),
      isKnown && h("progress", { "aria-label": "Simulated time", max: 1, value: 0 }),
      active && this.changes(run),
    ];
    this.bar.replaceChildren(...parts.filter((part) => part !== false));
    this.paintOutcome();
    if (focused) [...this.bar.querySelectorAll("button")].find((one) => one.textContent === focused || (["Pause", "Resume"].includes(focused) && one.id === "pause"))?.focus();
    this.progress();
  }

  /** How the run ended, or why it was repeated. */
  private paintOutcome(): void {
    const run = this.run;
    const say = (kind: string, ...parts: (HTMLElement | string)[]) => this.outcome.append(banner(kind, ...parts));
    this.outcome.replaceChildren();
    if (!run) return;
    if (run.state === "failed") say("bad", h("strong", {}, "The run failed."), h("span", {}, run.text));
    else if (run.state === "cancelled") say("", h("strong", {}, `Cancelled at ${run.time.toFixed(1)} s.`), h("span", {}, "Nothing was saved. Export scenario gives the file that repeats it."));
    else if (run.state === "paused") say("", h("strong", {}, `Paused at ${run.time.toFixed(1)} s.`), h("span", {}, "Add or stop a flow, or change a link: it takes effect from here."));
    else if (run.state === "done" && this.isExample) say("", h("strong", {}, "An example, just simulated:"), h("span", {}, "two H-TCP flows on one path, the second from 17 s on. Change the scenario, and press Start."));
    else if (run.state === "done" && run.folder) say("good", h("strong", {}, "Finished."), h("span", {}, `Saved as ${run.folder}. The figures are those of its report.`), h("a", { href: `#/results/${run.folder}` }, "Results"), h("a", { href: api.reportUrl(run.folder), download: "" }, "Report"));
    else if (run.text) say("", run.text);
  }

  /** The controls for changes during a run. */
  private changes(run: LiveRun): HTMLElement {
    const cc = choose(namedOptions(this.about.algorithms, "reno"), "reno", () => undefined, { "aria-label": "Algorithm of the new flow" });
    const flows = (run.plan?.document["flow"] as Table[] | undefined) ?? [];
    const place = flows.at(-1) ?? {};
    const ends = Object.fromEntries(Object.entries(place).filter(([key]) => key === "from" || key === "to"));
    const add = button("add flow now", "plain", () => this.attempt(api.change(run.id, { flow: { cc: cc.value, ...ends } })), { id: "add-now" });
    // A table of the file stands for `count` flows.
    let last = 0;
    const options = flows.flatMap((flow, k): [string, string][] => {
      const first = last + 1;
      last += Number(flow["count"] ?? 1);
      const name = last > first ? `flows ${first} to ${last}` : `flow ${first}`;
      return flow["stop"] === undefined ? [[String(k), `${name} (${run.plan!.labels[first - 1]!})`]] : [];
    });
    const which = choose(options, "", () => undefined, { "aria-label": "Flow to stop" });
    const stop = button("stop flow now", "plain", () => this.attempt(api.change(run.id, { stop: Number(which.value) })));
    return h(
      "div",
      { class: "changes", role: "group", "aria-label": "Changes during the run" },
      h("span", { class: "pair" }, cc, add),
      options.length > 0 && h("span", { class: "pair" }, which, stop),
      this.linkChange(run),
    );
  }

  /** The form for changing a link, with its present values. It keeps its input until these change. */
  private linkChange(run: LiveRun): HTMLElement | null {
    const event = this.scenario.fields.find(([name]) => name === "event")?.[1].item;
    if (!event || run.linkNames.length === 0) return null;
    this.linkChosen ||= run.linkNames[0]!;
    const now = run.present(this.linkChosen);
    const shown = JSON.stringify([run.id, this.linkChosen, now]);
    if (this.linkForm?.shown === shown) return this.linkForm.element;
    const form = new Form({ ...now }, () => undefined);
    const link = choose(run.linkNames, this.linkChosen, (name) => {
      this.linkChosen = name;
      this.paintBar();
    }, { "aria-label": "Link to change" });
    const act = button("change link now", "plain", async () => {
      form.show([]);
      general.replaceChildren();
      const differs = Object.entries(form.document).filter(([key, value]) => JSON.stringify(value) !== JSON.stringify(now[key]));
      try {
        await api.change(run.id, { event: { link: this.linkChosen, ...Object.fromEntries(differs) } });
      } catch (error) {
        const told = mistakesOf(error).map(({ key, problem }) => ({ key: key.replace(/^event\.\d+\.?/, ""), problem }));
        general.replaceChildren(...paragraphs(form.show(told)));
      }
    }, { id: "change-now" });
    const general = h("div", { class: "errors", role: "alert" });
    const fields = h("div", { class: "fields" }, h("div", { class: "field" }, h("span", {}, "link"), link), ...form.others("", event, ["at", "link", "weights"]));
    const element = h("details", { class: "link-change", open: this.linkForm?.element.hasAttribute("open") }, h("summary", {}, "change a link"), general, fields, act);
    this.linkForm = { shown, element };
    return element;
  }

  private async attempt(asked: Promise<unknown>): Promise<void> {
    try {
      await asked;
      this.notice.replaceChildren();
    } catch (error) {
      this.notice.replaceChildren(banner("bad", ...paragraphs(mistakesOf(error))));
    }
  }

  private async exportFile(): Promise<void> {
    const document = this.run?.plan?.document ?? this.form.document;
    const save = (text: string) => download(`${fileName(String(document["name"] ?? "scenario"))}.toml`, text, "application/toml");
    await api.file(document).then(save, this.refused);
  }

  /** Runs in progress that other pages started: they continue when those pages are closed. */
  private async listGoing(): Promise<void> {
    const runs = await api.runs().catch(() => []);
    const others = runs.filter((run) => run.id !== this.run?.id && (run.state === "running" || run.state === "paused"));
    this.going.replaceChildren(
      ...others.map((run) => h("a", { class: "chip", href: `#/run/${run.id}` }, `${run.name} is ${run.state}: ${run.time_s.toFixed(0)} s of ${run.duration_s} s`)),
    );
  }

  /** What the page says where charts will be. */
  private paintMessage(title: string, ...parts: (HTMLElement | string)[]): void {
    this.outcome.replaceChildren();
    updateTiles(this.figures, []);
    this.area.replaceChildren(empty("h2", title, ...parts));
  }

  // ---- Keys ----

  /** What single keys do here. */
  get keys(): Record<string, [string, () => void]> {
    const press = (id: string) => () => this.element.querySelector<HTMLElement>(`#${id}`)?.click();
    return {
      s: ["start a run", press("start")],
      p: ["pause, or resume", press("pause")],
      x: ["cancel the run", press("cancel")],
      f: ["add a flow now", press("add-now")],
      d: ["export the scenario", press("export")],
    };
  }
}
