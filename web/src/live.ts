// A run in progress: turns messages of the server into growing lines.

import type { About, ChartEntry, Mistake, Table } from "./api";
import { api, Refusal } from "./api";
import type { ChartData, ChartLine } from "./timechart";

export const MOST_LINES = 8;

/** Columns of new samples; the rows of one time arrive together. */
type Rows = Record<string, (number | null)[]>;

interface Message {
  type: "start" | "changed" | "restart" | "samples" | "state" | "done" | "cancelled" | "failed";
  id?: string;
  name?: string;
  document?: Table;
  duration_s?: number;
  speed?: number;
  state?: string;
  labels?: string[];
  links?: { name: string; rate_bit_s: number | null }[];
  bottleneck?: number;
  time_s?: number;
  flows?: Rows;
  queues?: Rows;
  why?: string;
  folder?: string;
  text?: string;
  wall_s?: number;
}

/** Lines over common times; gaps are NaN. */
class Grid {
  x: number[] = [];
  lines: number[][] = [];

  width(count: number): void {
    while (this.lines.length < count) this.lines.push(new Array<number>(this.x.length).fill(NaN));
  }

  /** Adds rows: `which` gives the line of each, -1 for none. */
  add(times: (number | null)[], which: (row: number) => number, values: (row: number) => number): void {
    times.forEach((time, row) => {
      const line = which(row);
      if (line < 0 || line >= this.lines.length) return;
      if (this.x.length === 0 || this.x[this.x.length - 1] !== time) {
        this.x.push(time!);
        for (const one of this.lines) one.push(NaN);
      }
      this.lines[line]![this.x.length - 1] = values(row);
    });
  }
}

/** The order of the charts on the page. */
const ORDER = ["cwnd", "goodput", "queue", "srtt", "utilisation", "drops"];

/** What the page shows of a run. */
export class LiveRun {
  document: Table | null = null;
  name = "";
  state = "running";
  time = 0;
  duration = 1;
  speed = 0;
  folder: string | null = null;
  text = "";
  wall: number | null = null;
  labels: string[] = [];
  /** The numbers of the links that are shown. */
  private shown: number[] = [];
  private links: { name: string; rate_bit_s: number | null }[] = [];
  private readonly grids = new Map<string, Grid>();
  private totals = new Map<number, number>();
  private source: EventSource | null = null;
  private stopped = false;

  constructor(
    readonly id: string,
    private readonly about: About,
    private readonly changed: () => void,
    private readonly connection: (state: "good" | "lost" | "shut" | "restarted") => void,
  ) {
    this.clear();
    this.connect();
  }

  /** The links that have a rate. */
  get linkNames(): string[] {
    return this.links.filter((link) => link.rate_bit_s !== null).map((link) => link.name);
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
    this.totals.clear();
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
        if (error instanceof Refusal && error.status === 401) this.connection("shut");
        return null;
      });
      if (about === null) continue;
      if (about.boot === this.about.boot) {
        this.connect();
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
      this.document = message.document!;
      this.name = message.name!;
      this.duration = message.duration_s!;
      this.labels = message.labels!;
      this.links = message.links!;
      const rated = this.links.map((_, k) => k).filter((k) => this.links[k]!.rate_bit_s !== null && !this.links[k]!.name.endsWith(".reverse"));
      this.shown = [message.bottleneck!, ...rated.filter((k) => k !== message.bottleneck)].slice(0, MOST_LINES);
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
      this.wall = message.wall_s ?? null;
      if (message.text) this.text = message.text;
      this.source?.close();
    }
    this.changed();
  }

  private widen(): void {
    const flows = Math.min(this.labels.length, MOST_LINES);
    for (const { id, of } of this.about.charts) this.grids.get(id)!.width(of === "flows" ? flows : this.shown.length);
  }

  private takeFlows(rows: Rows): void {
    for (const { id, column, factor } of this.chartsOf("flows")) {
      const values = rows[column]!;
      const hides = id === "srtt";
      this.grids.get(id)!.add(rows["time_s"]!, (row) => rows["flow"]![row]!, (row) => (hides && !values[row] ? NaN : (values[row] ?? NaN) * factor));
    }
  }

  private takeQueues(rows: Rows): void {
    const place = new Map(this.shown.map((link, line) => [link, line]));
    const line = (row: number) => place.get(rows["link"]![row]!) ?? -1;
    const gone = rows["link"]!.map((link, row) => {
      const total = rows["dropped"]![row]! + rows["lost"]![row]!;
      const since = total - (this.totals.get(link!) ?? 0);
      this.totals.set(link!, total);
      return since;
    });
    for (const { id, column, factor } of this.chartsOf("links")) {
      const values = id === "drops" ? gone : rows[column]!;
      this.grids.get(id)!.add(rows["time_s"]!, line, (row) => (values[row] ?? NaN) * factor);
    }
  }

  /** The charts in their current state. */
  charts(): ChartData[] {
    const alike = new Set(this.labels).size < this.labels.length;
    const flows = this.labels.slice(0, MOST_LINES).map((label, k) => (alike ? `${label} ${k + 1}` : label));
    const more = this.labels.length > MOST_LINES ? `The first ${MOST_LINES} of ${this.labels.length} flows.` : "";
    const links = this.shown.map((link) => this.links[link]!.name);
    const make = ({ id, of, title, unit, meaning }: ChartEntry): ChartData => {
      const grid = this.grids.get(id)!;
      const names = of === "flows" ? flows : links;
      const lines: ChartLine[] = names.map((name, k) => ({ name, colour: k, values: grid.lines[k] ?? [] }));
      return { id, title, unit, meaning, note: of === "flows" ? more : "", steps: id === "drops", x: grid.x, lines };
    };
    return [...this.about.charts].sort((a, b) => ORDER.indexOf(a.id) - ORDER.indexOf(b.id)).map(make);
  }

  private chartsOf(of: ChartEntry["of"]): ChartEntry[] {
    return this.about.charts.filter((chart) => chart.of === of);
  }
}

/** The errors of a refused request. */
export function mistakesOf(error: unknown): Mistake[] {
  const found = (error as { mistakes?: Mistake[] }).mistakes;
  if (found) return found;
  throw error;
}
