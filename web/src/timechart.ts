// Lines over time, drawn by uPlot, with linked zoom and cursor, thinned to the available pixels.

import uPlot from "uplot";
import "uplot/dist/uPlot.min.css";
import type { Mark } from "./content";
import { csvButton, h, number } from "./dom";
import { colour, css, dash, onLook } from "./theme";
import { lowerBound, thin, type Column } from "./thin";

/** A line of a chart. */
export interface ChartLine {
  name: string;
  colour: number;
  minor?: boolean;
  values: Column;
}

/** What a chart shows; `x` and the lines have the same length. */
export interface ChartData {
  id: string;
  title: string;
  unit: string;
  meaning: string;
  note: string;
  steps?: boolean;
  x: Column;
  lines: ChartLine[];
  marks?: Mark[];
  /** The measuring window; the rest is shaded. */
  window?: [number, number] | null;
}

/** Charts that share the time axis: zooming one zooms all. */
export class Linked {
  readonly key = Math.random().toString(36).slice(2);
  readonly charts: TimeChart[] = [];
  private range: [number, number] | null = null;
  /** The longest time to show; by default, the time of the last sample. */
  extent: [number, number] | null = null;

  /** The range that is shown now. */
  shown(): [number, number] {
    return this.range ?? this.whole();
  }

  private whole(): [number, number] {
    if (this.extent) return this.extent;
    let [from, to] = [Infinity, -Infinity];
    for (const { data } of this.charts) {
      if (data.x.length > 0) [from, to] = [Math.min(from, data.x[0]!), Math.max(to, data.x[data.x.length - 1]!)];
    }
    return to > from ? [from, to] : [0, 1];
  }

  zoom(range: [number, number] | null): void {
    const [from, to] = this.whole();
    if (range) {
      const width = Math.min(range[1] - range[0], to - from);
      const start = Math.max(from, Math.min(range[0], to - width));
      this.range = width >= to - from ? null : [start, start + width];
    } else {
      this.range = null;
    }
    this.draw();
  }

  /** Zooms by a factor about the middle, and moves by a share of the shown range. */
  step(factor: number, move: number): void {
    const [from, to] = this.shown();
    const [middle, width] = [(from + to) / 2 + move * (to - from), (to - from) * factor];
    this.zoom([middle - width / 2, middle + width / 2]);
  }

  draw(): void {
    for (const chart of this.charts) chart.draw();
  }
}

const HEIGHT = 210;
// More marks than this are ticks without texts.
const MOST_TEXTS = 8;
// Maximum number of minor lines with a legend entry each.
const MOST_MINOR = 2;

/** A chart with its head, legend and note. */
export class TimeChart {
  readonly element: HTMLElement;
  private plot: uPlot | null = null;
  private readonly area = h("div", { class: "plot-area" });
  private readonly legend = h("ul", { class: "legend" });
  private readonly note = h("p", { class: "note" });
  private readonly values: HTMLElement[] = [];
  private hidden = new Set<number>();
  private width = 0;
  private pending = false;

  constructor(
    public data: ChartData,
    private readonly linked: Linked,
    name: string,
  ) {
    linked.charts.push(this);
    this.area.tabIndex = 0;
    this.area.setAttribute("role", "img");
    this.area.title = "Drag to zoom, double-click to see all. Keys: arrows move, + and - zoom, 0 shows all.";
    this.area.addEventListener("keydown", (event) => this.key(event));
    this.element = h(
      "figure",
      { class: "chart", "data-chart": data.id },
      h(
        "figcaption",
        {},
        h("h3", { title: data.meaning }, data.title, h("small", {}, ` ${data.unit}`)),
        csvButton(data.title, `${name}-${data.id}`, () => this.rows()),
      ),
      this.legend,
      this.area,
      this.note,
    );
    this.describe();
    this.element.dataset["samples"] = String(data.x.length);
    onLook(this.area, (isRecoloured) => this.fit(isRecoloured));
  }

  /** Replaces the lines, or adds samples to them. */
  update(data: ChartData): void {
    const same = data.lines.length === this.data.lines.length && data.lines.every((line, k) => line.name === this.data.lines[k]!.name);
    this.data = data;
    if (same) this.draw();
    else this.build();
  }

  private describe(): void {
    this.legend.replaceChildren();
    this.values.length = 0;
    const { lines } = this.data;
    const all = lines.map((_, k) => k);
    const minor = all.filter((k) => lines[k]!.minor);
    // If many lines accompany others, they share one legend entry, named by the last word of their names.
    const together = minor.length > MOST_MINOR;
    for (const k of all) {
      if (lines[k]!.minor && together) this.values.push(h("output"));
      else this.values.push(this.entry([k], lines[k]!.name, colour(lines[k]!.colour)));
    }
    if (together) this.entry(minor, lines[minor[0]!]!.name.split(" ").at(-1)!, css("--ink-2"));
    const names = this.data.lines.map((line) => line.name).join(", ");
    const marks = (this.data.marks ?? []).slice(0, MOST_TEXTS).map((mark) => ` At ${number(mark.time_s)} s: ${mark.text}.`);
    this.area.setAttribute("aria-label", `${this.data.title} (${this.data.unit}) over time: ${names}. ${this.data.meaning}${marks.join("")}`);
  }

  /** A legend entry, which shows or hides lines; returns the element for their value. */
  private entry(which: number[], name: string, shade: string): HTMLElement {
    const value = h("output", { class: "value" });
    const swatch = h("i", { class: this.data.lines[which[0]!]!.minor ? "swatch minor" : "swatch" });
    swatch.style.setProperty("--line", shade);
    const isShown = () => !this.hidden.has(which[0]!);
    const button = h("button", { type: "button", "aria-pressed": String(isShown()), title: "Show or hide" }, swatch, name, value);
    button.addEventListener("click", () => {
      const show = !isShown();
      for (const k of which) {
        if (show) this.hidden.delete(k);
        else this.hidden.add(k);
        this.plot?.setSeries(k + 1, { show });
      }
      button.setAttribute("aria-pressed", String(show));
    });
    this.legend.append(h("li", {}, button));
    return value;
  }

  private fit(isRecoloured: boolean): void {
    const width = Math.floor(this.area.clientWidth);
    if (width === this.width && !isRecoloured) return;
    this.width = width;
    if (this.plot && width > 0 && !isRecoloured) {
      this.plot.setSize({ width, height: HEIGHT });
      this.draw();
    } else {
      this.build();
    }
  }

  private build(): void {
    this.describe();
    this.plot?.destroy();
    this.plot = null;
    if (this.width === 0) return;
    const axis = { stroke: () => css("--ink-2"), grid: { stroke: () => css("--grid"), width: 1 }, ticks: { show: false }, font: "12px system-ui, sans-serif" };
    const options: uPlot.Options = {
      width: this.width,
      height: HEIGHT,
      legend: { show: false },
      padding: [8, 22, 0, 0],
      cursor: {
        sync: { key: this.linked.key, setSeries: false },
        drag: { x: true, y: false, setScale: false },
        points: { size: 6 },
        bind: {
          dblclick: () => () => {
            this.linked.zoom(null);
            return null;
          },
        },
      },
      scales: {
        x: { time: false, range: () => this.linked.shown() },
        y: { range: (_, __, most) => [0, most > 0 ? most * this.room() : 1] },
      },
      axes: [
        { ...axis, size: 26, values: (_, ticks) => ticks.map((tick) => `${tick} s`) },
        { ...axis, size: 58, values: (_, ticks) => ticks.map((tick) => number(tick)) },
      ],
      series: [
        {},
        ...this.data.lines.map((line, k): uPlot.Series => ({
          label: line.name,
          show: !this.hidden.has(k),
          stroke: colour(line.colour),
          width: line.minor ? 1 : 1.6,
          dash: line.minor ? [2, 3] : dash(line.colour),
          fill: this.data.steps ? colour(line.colour) + "33" : undefined,
          paths: this.data.steps ? uPlot.paths.stepped!({ align: -1 }) : undefined,
          points: { show: false },
          spanGaps: true,
        })),
      ],
      hooks: {
        setSelect: [
          (plot) => {
            const { left, width } = plot.select;
            if (width < 4) return;
            this.linked.zoom([plot.posToVal(left, "x"), plot.posToVal(left + width, "x")]);
            plot.setSelect({ left: 0, top: 0, width: 0, height: 0 }, false);
          },
        ],
        setCursor: [(plot) => this.read(plot)],
        drawClear: [(plot) => this.shade(plot)],
        draw: [(plot) => this.mark(plot)],
      },
    };
    this.plot = new uPlot(options, this.points(), this.area);
  }

  /** Room above the highest line: more if marks have texts there. */
  private room(): number {
    const marks = this.data.marks?.length ?? 0;
    return marks > 0 && marks <= MOST_TEXTS ? 1.2 : 1.06;
  }

  /** Shades what lies outside the measuring window. */
  private shade(plot: uPlot): void {
    const { window } = this.data;
    if (!window) return;
    const { left, top, width, height } = plot.bbox;
    const place = (time: number) => Math.min(left + width, Math.max(left, plot.valToPos(time, "x", true)));
    plot.ctx.save();
    plot.ctx.fillStyle = css("--ink-2");
    plot.ctx.globalAlpha = 0.09;
    plot.ctx.fillRect(left, top, place(window[0]) - left, height);
    plot.ctx.fillRect(place(window[1]), top, left + width - place(window[1]), height);
    plot.ctx.restore();
  }

  /** Draws a thin line for each mark and its text beside it; ticks if there are many in view. */
  private mark(plot: uPlot): void {
    const { left, top, width, height } = plot.bbox;
    const [from, to] = this.linked.shown();
    const marks = (this.data.marks ?? []).filter((mark) => mark.time_s >= from && mark.time_s <= to);
    const { ctx } = plot;
    const dpr = devicePixelRatio;
    ctx.save();
    ctx.strokeStyle = ctx.fillStyle = css("--ink-2");
    ctx.lineWidth = dpr;
    ctx.font = `${10.5 * dpr}px system-ui, sans-serif`;
    ctx.textBaseline = "top";
    ctx.textAlign = "left";
    const many = marks.length > MOST_TEXTS;
    ctx.setLineDash(many ? [] : [4 * dpr, 3 * dpr]);
    const places = marks.map((mark) => Math.round(plot.valToPos(mark.time_s, "x", true)));
    ctx.globalAlpha = 0.6;
    for (const x of places) {
      ctx.beginPath();
      ctx.moveTo(x, top);
      ctx.lineTo(x, top + (many ? 6 * dpr : height));
      ctx.stroke();
    }
    ctx.globalAlpha = 1;
    // Texts are outlined, because lines pass below them.
    ctx.setLineDash([]);
    ctx.strokeStyle = css("--paper");
    ctx.lineWidth = 4 * dpr;
    ctx.lineJoin = "round";
    // The right ends of the texts in each row.
    const ends: number[] = [];
    for (const [number, mark] of many ? [] : marks.entries()) {
      const x = places[number]!;
      const length = ctx.measureText(mark.text).width + 8 * dpr;
      const begins = x + length > left + width ? Math.max(left, x - length) : x;
      const row = ends.findIndex((end) => end <= begins);
      const at = row < 0 ? ends.length : row;
      if (at > 2) continue;
      ends[at] = begins + length;
      const [textX, textY] = [begins + 4 * dpr, top + (2 + 13 * at) * dpr];
      ctx.strokeText(mark.text, textX, textY);
      ctx.fillText(mark.text, textX, textY);
    }
    ctx.restore();
  }

  /** Shows the values under the cursor in the legend. */
  private read(plot: uPlot): void {
    const index = plot.cursor.idx;
    this.values.forEach((value, k) => {
      const at = index === null || index === undefined ? null : plot.data[k + 1]?.[index];
      value.textContent = at === null || at === undefined ? "" : number(at);
    });
  }

  private points(): uPlot.AlignedData {
    const bins = 2 * Math.max(100, this.width - 80);
    const [from, to] = this.linked.shown();
    const { x, lines } = this.data;
    const [first, end] = [Math.max(0, lowerBound(x, from) - 1), Math.min(x.length, lowerBound(x, to) + 1)];
    const drawn = thin(x, lines.map((line) => line.values), first, end, bins);
    const thinned = drawn.thinned ? `Drawn: smallest and largest of each of ${number(drawn.x.length / 2)} steps; ${number(end - first)} samples are in view.` : "";
    const text = [this.data.note, thinned].filter(Boolean).join(" ");
    if (this.note.textContent !== text) this.note.textContent = text;
    return [drawn.x, ...drawn.lines] as uPlot.AlignedData;
  }

  /** Draws with the next frame. */
  draw(): void {
    this.element.dataset["samples"] = String(this.data.x.length);
    if (this.pending) return;
    this.pending = true;
    requestAnimationFrame(() => {
      this.pending = false;
      this.plot?.setData(this.points());
    });
  }

  private key(event: KeyboardEvent): void {
    const steps: Record<string, [number, number]> = {
      ArrowLeft: [1, -0.2],
      ArrowRight: [1, 0.2],
      "+": [0.5, 0],
      "=": [0.5, 0],
      "-": [2, 0],
    };
    const step = steps[event.key];
    if (step) this.linked.step(...step);
    else if (event.key === "0") this.linked.zoom(null);
    else return;
    event.preventDefault();
  }

  /** The samples, with their heads. */
  private rows(): (string | number | null)[][] {
    const { x, lines, title, unit } = this.data;
    const head = ["time_s", ...lines.map((line) => `${line.name}: ${title} (${unit})`)];
    return [head, ...Array.from(x, (time, row) => [time, ...lines.map(({ values }) => (Number.isFinite(values[row]!) ? values[row]! : null))])];
  }
}
