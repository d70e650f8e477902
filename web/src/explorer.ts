// Runs by their settings: a metric against a key, with a line for each value of another key and with intervals; boxes over repeats; distributions;
// heat maps. Titles, labels and scales of axes are those of `elephan plot`.

import type { Runs } from "./content";
import { choose, h, number } from "./dom";
import { boxFigure, heatFigure, xyFigure } from "./figures";

/** The mean of some values, and half of its 95 % interval (Student's t). */
export function estimate(values: number[], t95: number[]): { mean: number; half: number | null } {
  const n = values.length;
  const mean = values.reduce((sum, value) => sum + value, 0) / n;
  if (n < 2) return { mean, half: null };
  const variance = values.reduce((sum, value) => sum + (value - mean) ** 2, 0) / (n - 1);
  return { mean, half: (t95[Math.min(n - 1, t95.length) - 1] ?? 1.96) * Math.sqrt(variance / n) };
}

// Keys whose values differ only by chance.
const REPEATS = ["repeat", "seed"];

/** The runs' explorer. */
export function explorer(runs: Runs, name: string): HTMLElement {
  const distinct = runs.keys.map((_, k) => [...new Map(runs.settings.map((row, r) => [row[k]!, runs.axis[r]![k] ?? null])).entries()]);
  distinct.forEach((values, k) => runs.keys[k]!.numeric && values.sort((a, b) => (a[1] ?? 0) - (b[1] ?? 0)));
  const varied = runs.keys.map((_, k) => k).filter((k) => distinct[k]!.length > 1);
  const telling = varied.filter((k) => !REPEATS.includes(runs.keys[k]!.name));
  const firstNumeric = telling.find((k) => runs.keys[k]!.numeric) ?? telling[0] ?? varied[0] ?? 0;
  const state = {
    metric: 0,
    x: firstNumeric,
    by: telling.find((k) => k !== firstNumeric) ?? -1,
    kind: runs.keys[firstNumeric]?.numeric ? "lines" : "boxes",
    // The values at which the other keys are held; an empty value selects all.
    only: new Map(telling.map((k) => [k, distinct[k]![0]![0]])),
  };
  const figure = h("div", {});
  const command = h("div", {});
  const others = h("div", { class: "row" });

  const field = (title: string, options: (string | [string, string])[], value: string, set: (value: string) => void) => {
    const select = choose(options, value, (chosen) => {
      set(chosen);
      draw();
    });
    return h("label", { class: "field" }, h("span", {}, title), select);
  };
  const keys: [string, string][] = varied.map((k) => [String(k), runs.keys[k]!.name]);

  function draw(): void {
    const metric = runs.metrics[state.metric]!;
    others.replaceChildren(
      ...varied
        .filter((k) => k !== state.x && k !== state.by && !REPEATS.includes(runs.keys[k]!.name))
        .map((k) => field(runs.keys[k]!.name, [["", "all"], ...distinct[k]!.map(([value]) => value)], state.only.get(k) ?? "", (value) => state.only.set(k, value))),
    );
    const chosen = runs.settings.map((_, r) => r).filter((r) => [...state.only].every(([k, value]) => k === state.x || k === state.by || value === "" || runs.settings[r]![k]! === value));
    const xs = distinct[state.x] ?? [["all", null]];
    const bys = state.by >= 0 ? distinct[state.by]! : [["all runs", null] as [string, number | null]];
    const cell = (x: string, by: string) =>
      chosen
        .filter((r) => (varied.length === 0 || runs.settings[r]![state.x]! === x) && (state.by < 0 || runs.settings[r]![state.by]! === by))
        .map((r) => runs.values[r]![state.metric] ?? null);
    const defined = (values: (number | null)[]) => values.filter((value): value is number => value !== null);
    const none = { name: "", label: "", log: false, numeric: false, texts: {} as Record<string, string> };
    const [along, other] = [runs.keys[state.x] ?? none, runs.keys[state.by] ?? none];
    const named = (key: typeof along, value: string) => key.texts[value] ?? value;
    const id = `${metric.name}-${along.name}-${state.kind}`;
    const title = `${metric.title} over ${along.label}`;
    const held = [...state.only].every(([k, value]) => k === state.x || k === state.by || value !== "");
    const repeats = held ? "repeats" : "runs with several settings";
    const told = held && commanded();
    command.replaceChildren(...(told ? [h("div", { class: "command" }, h("code", {}, told))] : []));
    const missing = chosen.filter((r) => (runs.values[r]![state.metric] ?? null) === null).length;
    const note = `${metric.meaning} ${number(chosen.length)} runs${missing ? `, undefined in ${missing} of them (left out)` : ""}.`;
    if (state.kind === "heat" && state.by >= 0) {
      // Numbers ascend upwards.
      const down = other.numeric ? [...bys].reverse() : bys;
      const values = down.map(([by]) => xs.map(([x]) => (defined(cell(x, by)).length ? estimate(defined(cell(x, by)), runs.t95).mean : null)));
      const spec = { id, title: `${title} and ${other.label}`, x: along.label, columns: xs.map(([x]) => named(along, x)), y: other.label, rows: down.map(([by]) => named(other, by)), values, unit: metric.unit, note: `${note} Means over ${repeats}.` };
      figure.replaceChildren(heatFigure(spec, name));
    } else if (state.kind === "cdf") {
      const series = bys.map(([by], k) => {
        const values = defined(chosen.filter((r) => state.by < 0 || runs.settings[r]![state.by]! === by).map((r) => runs.values[r]![state.metric] ?? null)).sort((a, b) => a - b);
        return { name: by, colour: k, points: false, x: values.flatMap((value) => [value, value]), y: values.flatMap((_, n) => [n / values.length, (n + 1) / values.length]) };
      });
      figure.replaceChildren(xyFigure({ id, title: `Distribution of ${metric.name}`, x: { label: metric.label }, y: { label: "share of runs", zero: true }, series, note }, name));
    } else if (state.kind === "boxes" || !along.numeric) {
      const series = bys.map(([by], k) => ({ name: by, colour: k, values: xs.map(([x]) => cell(x, by)) }));
      const spec = { id, title, x: along.label, y: metric.label, groups: xs.map(([x]) => named(along, x)), series, note: `${note} Boxes from the first to the third quartile, whiskers to the extremes, the thick line is the median.` };
      figure.replaceChildren(boxFigure(spec, name));
    } else {
      const series = bys.map(([by], k) => {
        const estimates = xs.map(([x]) => defined(cell(x, by))).map((values) => (values.length ? estimate(values, runs.t95) : null));
        const bound = (sign: number) => estimates.map((one) => (one?.half === null || one?.half === undefined ? null : one.mean + sign * one.half));
        return { name: by, colour: k, x: xs.map(([, at]) => at ?? 0), y: estimates.map((one) => one?.mean ?? null), low: bound(-1), high: bound(1) };
      });
      const spec = { id, title, x: { label: along.label, log: along.log, ticks: xs.map(([text, at]): [number, string] => [at ?? 0, named(along, text)]) }, y: { label: metric.label, zero: true }, series, note: `${note} Means with 95 % intervals (Student's t) over ${repeats}.` };
      figure.replaceChildren(xyFigure(spec, name));
    }
  }

  /** The command that draws the same; none for boxes, and for results that lie side by side. */
  function commanded(): string {
    const of = (k: number) => runs.keys[k]!.name;
    const isChance = (k: number) => k >= 0 && REPEATS.includes(of(k));
    const isDrawn = state.kind === "lines" ? runs.keys[state.x]!.numeric : state.kind !== "boxes" && state.by >= 0;
    if (!isDrawn || isChance(state.x) || isChance(state.by) || of(0) === "result") return "";
    const where = [...state.only].filter(([k]) => k !== state.x && k !== state.by).map(([k, value]) => ` --where "${of(k)}=${value}"`);
    const over = state.kind === "cdf" ? " --cdf" : ` --over ${of(state.x)}${state.kind === "heat" ? `,${of(state.by)}` : ""}`;
    const by = state.by < 0 || state.kind === "heat" ? "" : ` --by ${of(state.by)}`;
    return `elephan plot ${runs.metrics[state.metric]!.key} RESULTS${over}${by}${where.join("")} --width 3.5in --no-title --out figure.pdf`;
  }

  const kinds: [string, string][] = [["lines", "means and confidence intervals"], ["boxes", "box plots"], ["cdf", "distribution over runs"], ["heat", "heat map"]];
  const element = h(
    "section",
    { class: "explorer" },
    h("h2", {}, runs.title),
    h(
      "div",
      { class: "row" },
      field("metric", runs.metrics.map((metric, k): [string, string] => [String(k), metric.name]), "0", (value) => (state.metric = +value)),
      keys.length > 0 && field("along", keys, String(state.x), (value) => (state.x = +value)),
      keys.length > 1 && field("one line for each", [["-1", "nothing"], ...keys], String(state.by), (value) => (state.by = +value)),
      field("as", keys.length > 1 ? kinds : kinds.slice(0, 3), state.kind, (value) => (state.kind = value)),
    ),
    others,
    figure,
    command,
  );
  draw();
  return element;
}
