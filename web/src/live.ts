// A run in progress: turns messages of the server into growing lines.

import { api, isShut, type About, type ChartEntry, type Table } from "./api";
import type { Mark, Tile } from "./content";
import { number } from "./dom";
import type { ChartData, ChartLine } from "./timechart";
import type { Moment } from "./topology";

export const MOST_LINES = 8;

/** Whether the server answers: it does, does not, has a new token, has forgotten the run, or never had it. */
export type Connection = "good" | "lost" | "shut" | "restarted" | "unknown";

/** Columns of new samples; the rows of one time arrive together. */
type Rows = Record<string, (number | null)[]>;

/** A scenario, and what engines make of it. */
export interface Plan {
  name: string;
  document: Table;
  duration_s: number;
  labels: string[];
  /** The links that the data of each flow cross, by number. */
  routes: number[][];
  /** Rate, delay and losses are those before the `changes`, which are in order of time. */
  links: { name: string; rate_bit_s: number | null; initial: Table }[];
  changes: Table[];
  bottleneck: number;
  /** The measuring window, the time over which means are drawn, and what is known to happen. */
  from_s: number;
  to_s: number;
  mean_s: number;
  marks: Mark[];
}

interface Message extends Partial<Plan> {
  type: "start" | "changed" | "restart" | "samples" | "state" | "done" | "cancelled" | "failed";
  speed?: number;
  state?: string;
  time_s?: number;
  flows?: Rows;
  queues?: Rows;
  why?: string;
  folder?: string;
  text?: string;
  tiles?: Tile[];
}

/** Simulated seconds that the figures of a run in progress cover. */
const RECENT_S = 10;

/** A value of a line, of which there is none if its number is out of range. */
interface Point {
  time: number;
  line: number;
  value: number;
}

/** Lines over common times; gaps are NaN. */
class Grid {
  x: number[] = [];
  lines: number[][] = [];
  /** For each line, the sum and the number of values in the interval of a mean that is not over. */
  private sums: [number, number][] = [];
  private interval = 0;

  /** Adds rates to means over intervals of `length`, each at its middle, or at its end for steps. */
  average(length: number, steps: boolean, points: Point[]): void {
    for (const { time, line, value } of points) {
      // A sample at an edge belongs to the interval before.
      const interval = Math.ceil(time / length - 1e-6);
      if (!(line in this.lines) || interval < 1 || !Number.isFinite(value)) continue;
      if (interval !== this.interval) {
        this.interval = interval;
        this.sums = [];
      }
      const [sum, count] = this.sums[line] ?? [0, 0];
      this.sums[line] = [sum + value, count + 1];
      const at = (interval - (steps ? 0 : 0.5)) * length;
      this.add([{ time: at, line, value: (sum + value) / (count + 1) }]);
    }
  }

  width(count: number): void {
    while (this.lines.length < count) this.lines.push(new Array<number>(this.x.length).fill(NaN));
  }

  add(points: Point[]): void {
    for (const { time, line, value } of points) {
      if (!(line in this.lines)) continue;
      if (this.x.at(-1) !== time) {
        this.x.push(time);
        for (const one of this.lines) one.push(NaN);
      }
      this.lines[line]![this.x.length - 1] = value;
    }
  }
}

/** What the page shows of a run. */
export class LiveRun {
  /** Null until the first message. */
  plan: Plan | null = null;
  state = "running";
  time = 0;
  speed = 0;
  folder: string | null = null;
  text = "";
  /** The figures of the finished run, over its measuring window. */
  private tiles: Tile[] = [];
  /** What the figures cover, of flows and of the bottleneck, in order of time. */
  private sent: { time: number; flow: number; goodput: number; srtt: number }[] = [];
  private passed: { time: number; utilisation: number; gone: number }[] = [];
  private queues = new Map<number, { packets: number; most: number; drops: boolean }>();
  /** The numbers of the links that are shown. */
  private shown: number[] = [];
  private readonly grids = new Map<string, Grid>();
  /** Of each link, the time of the last sample, and the packets dropped or lost, and marked, until then. */
  private counted = new Map<number, [number, number, number]>();
  /** The time over which means are drawn, which a change does not change. */
  private meanS = 1;
  private source: EventSource | null = null;
  private stopped = false;

  constructor(
    readonly id: string,
    private readonly about: About,
    private readonly changed: () => void,
    private readonly connection: (state: Connection) => void,
  ) {
    this.clear();
    this.connect();
  }

  /** The links that have a rate. */
  get linkNames(): string[] {
    return (this.plan?.links ?? []).filter((link) => link.rate_bit_s !== null).map((link) => link.name);
  }

  /** Rate, delay, losses and state of a link now, as a change of it would give them. */
  present(link: string): Table {
    const known = (values: Table): Table => Object.fromEntries(Object.entries(values).filter(([, value]) => value !== null));
    const { links, changes } = this.plan!;
    const past = changes.filter((change) => change["link"] === link && Number(change["at_s"]) <= this.time);
    return Object.assign({ up: true }, known(links.find((one) => one.name === link)?.initial ?? {}), ...past.map(({ at_s: _, link: __, weights: ___, ...rest }) => known(rest))) as Table;
  }

  /** The names of the flows, as in reports. */
  get flowNames(): string[] {
    return (this.plan?.labels ?? []).map((label, k) => `flow ${k + 1}: ${label}`);
  }

  get isOver(): boolean {
    return ["done", "cancelled", "failed"].includes(this.state);
  }

  close(): void {
    this.stopped = true;
    this.source?.close();
  }

  private clear(): void {
    for (const { id } of this.about.charts) this.grids.set(id, new Grid());
    this.counted.clear();
    this.queues.clear();
    this.sent = [];
    this.passed = [];
  }

  private connect(): void {
    const source = new EventSource(`/api/runs/${this.id}/messages`);
    this.source = source;
    source.onopen = () => this.connection("good");
    source.onmessage = (event) => this.take(JSON.parse(event.data as string) as Message);
    source.addEventListener("end", () => source.close());
    source.onerror = () => {
      if (this.stopped || this.isOver) return;
      this.connection("lost");
      // The browser retries automatically while its state is CONNECTING. A server that does not know the run closes the connection for good.
      if (source.readyState === EventSource.CLOSED) void this.await();
    };
  }

  /** Waits for the server. It may have been restarted, and then does not know this run. */
  private async await(): Promise<void> {
    while (!this.stopped) {
      await new Promise((done) => setTimeout(done, 700));
      const about = await api.about().catch((error: unknown) => {
        // A different server process, which has a different token and does not have this run.
        if (isShut(error)) this.connection("shut");
        return null;
      });
      if (about === null) continue;
      if (about.boot === this.about.boot) {
        const runs = await api.runs().catch(() => null);
        if (runs === null) continue;
        if (runs.some((run) => run.id === this.id)) this.connect();
        else this.connection("unknown");
      } else {
        this.state = "failed";
        this.text = `The server was restarted and does not have this run, which had reached ${this.time.toFixed(1)} s.`;
        this.connection("restarted");
        this.changed();
      }
      return;
    }
  }

  private take(message: Message): void {
    if (message.type === "restart") {
      this.clear();
      this.widen();
      this.text = message.why ?? "";
    }
    if (message.type === "start" || message.type === "changed") {
      this.plan = message as Plan;
      const { links, bottleneck, mean_s } = this.plan;
      if (message.type === "start") this.meanS = mean_s;
      const rated = [...links.keys()].filter((k) => links[k]!.rate_bit_s !== null && !links[k]!.name.endsWith(".reverse"));
      this.shown = [bottleneck, ...rated.filter((k) => k !== bottleneck)].slice(0, MOST_LINES);
      this.widen();
    }
    this.state = message.state ?? this.state;
    this.speed = message.speed ?? this.speed;
    this.time = message.time_s ?? this.time;
    if (message.flows) this.takeFlows(message.flows);
    if (message.queues) this.takeQueues(message.queues);
    if (message.type === "done" || message.type === "cancelled" || message.type === "failed") {
      this.state = message.type;
      this.folder = message.folder ?? null;
      this.tiles = message.tiles ?? [];
      if (message.text) this.text = message.text;
      this.source?.close();
    }
    this.changed();
  }

  private widen(): void {
    const flows = Math.min(this.plan?.labels.length ?? 0, MOST_LINES);
    for (const { id, of } of this.about.charts) this.grids.get(id)!.width(of === "flows" ? flows : this.shown.length);
  }

  private recent<Row extends { time: number }>(rows: Row[]): Row[] {
    return rows.filter(({ time }) => time >= this.time - RECENT_S);
  }

  /** Figures of the last simulated seconds, from the samples of all flows and of the bottleneck. */
  figures(): Tile[] {
    if (this.tiles.length > 0) return this.tiles;
    const span = `the last ${Math.min(RECENT_S, Math.max(1, Math.round(this.time)))} s`;
    const sum = (values: number[]) => values.reduce((all, value) => all + value, 0);
    const mean = (values: number[]) => (values.length > 0 ? sum(values) / values.length : NaN);
    const flows = new Map<number, number[]>();
    for (const { flow, goodput } of this.sent) flows.set(flow, [...(flows.get(flow) ?? []), goodput]);
    const times = new Set([...this.sent, ...this.passed].map(({ time }) => time));
    const goodput = sum(this.sent.map((one) => one.goodput)) / times.size;
    const sending = [...flows.values()].map(mean).filter((value) => value > 0);
    const text = (value: number, digits: number) => (Number.isFinite(value) ? value.toFixed(digits) : "–");
    const srtt = this.sent.map((one) => one.srtt).filter(Number.isFinite);
    return [
      { name: "goodput", value: text(goodput / 1e6, 1), unit: "Mbit/s", meaning: `Application bytes delivered in order over ${span}, all flows together.` },
      { name: "utilisation", value: text(100 * mean(this.passed.map((one) => one.utilisation).filter(Number.isFinite)), 1), unit: "%", meaning: `IP packets that the bottleneck transmitted over ${span}, as a share of what its rate allows.` },
      { name: "fairness", value: text(sending.length > 1 ? Math.min(...sending) / Math.max(...sending) : NaN, 2), unit: "least/most", meaning: `Minimum of the flows' goodputs over their maximum, over ${span}, of the flows that sent in it.` },
      { name: "loss", value: text(sum(this.passed.map((one) => one.gone)), 0), unit: "packets", meaning: `Packets dropped or lost at the bottleneck in ${span}.` },
      { name: "mean RTT", value: text(1e3 * mean(srtt), 1), unit: "ms", meaning: `Mean of the flows' smoothed round-trip times over ${span}.` },
    ];
  }

  /** What moves in the drawing of the network. */
  moment(): Moment {
    const last = new Map(this.sent.filter(({ time }) => time === this.sent.at(-1)!.time).map(({ flow, goodput }) => [flow, goodput]));
    return {
      queues: new Map([...this.queues].map(([link, queue]) => [this.plan!.links[link]!.name, queue])),
      goodput: this.flowNames.map((_, flow) => last.get(flow)),
      rates: new Map(
        this.linkNames.map((link) => {
          const { up, rate } = this.present(link);
          return [link, up ? String(rate) : "down"];
        }),
      ),
    };
  }

  private takeFlows(rows: Rows): void {
    const fresh = rows["time_s"]!.map((time, row) => ({ time: time!, flow: rows["flow"]![row]!, goodput: rows["goodput_bit_s"]![row] ?? NaN, srtt: rows["srtt_s"]![row] ?? NaN }));
    this.sent = this.recent([...this.sent, ...fresh]);
    this.put("flows", ({ column, factor }) => fresh.map(({ time, flow }, row) => ({ time, line: flow, value: (rows[column]![row] ?? NaN) * factor })));
  }

  private takeQueues(rows: Rows): void {
    const place = new Map(this.shown.map((link, line) => [link, line]));
    const rates: number[] = [];
    rows["link"]!.forEach((link, row) => {
      const [time, gone, marked] = [rows["time_s"]![row]!, rows["dropped"]![row]! + rows["lost"]![row]!, rows["marked"]![row]!];
      const [before, goneBefore, markedBefore] = this.counted.get(link!) ?? [0, 0, 0];
      const since = gone - goneBefore;
      rates.push(time > before ? (since + marked - markedBefore) / (time - before) : NaN);
      this.counted.set(link!, [time, gone, marked]);
      const packets = rows["packets"]![row]!;
      this.queues.set(link!, { packets, most: Math.max(packets, this.queues.get(link!)?.most ?? 0), drops: since > 0 });
      if (link === this.plan!.bottleneck) this.passed.push({ time, utilisation: rows["utilisation"]![row] ?? NaN, gone: since });
    });
    this.passed = this.recent(this.passed);
    this.put("links", ({ id, column, factor }) => {
      const values = id === "drops" ? rates : rows[column]!;
      return rows["link"]!.map((link, row) => ({ time: rows["time_s"]![row]!, line: place.get(link!) ?? -1, value: (values[row] ?? NaN) * factor }));
    });
  }

  private put(of: ChartEntry["of"], points: (entry: ChartEntry) => Point[]): void {
    for (const entry of this.about.charts.filter((chart) => chart.of === of)) {
      const grid = this.grids.get(entry.id)!;
      if (entry.mean) grid.average(this.meanS, entry.id === "drops", points(entry));
      else grid.add(points(entry));
    }
  }

  /** The charts in their current state. */
  charts(): ChartData[] {
    const { links, marks, from_s, to_s } = this.plan!;
    const names = { flows: this.flowNames.slice(0, MOST_LINES), links: this.shown.map((link) => links[link]!.name) };
    const count = this.flowNames.length;
    const more = count > MOST_LINES ? `The first ${MOST_LINES} of ${count} flows.` : "";
    const make = ({ id, of, title, unit, meaning, mean }: ChartEntry): ChartData => {
      const grid = this.grids.get(id)!;
      const note = [of === "flows" ? more : "", mean ? `Means over ${number(this.meanS)} s.` : ""].filter(Boolean).join(" ");
      const lines: ChartLine[] = names[of].map((name, k) => ({ name, colour: k, values: grid.lines[k] ?? [] }));
      return { id, title, unit, meaning, note, steps: id === "drops", x: grid.x, lines, marks, window: [from_s, to_s] };
    };
    return this.about.charts.map(make);
  }
}
