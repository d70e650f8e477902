// Figures that are not over time: lines and points with intervals, box plots, heat maps. They are drawn as SVG, and redrawn for each width and theme.

import type { CellsSpec, XySpec } from "./content";
import { csvButton, h, number, s } from "./dom";
import { colour, css, dash, isDark, onLook } from "./theme";

/** Groups of values, with one box each, in groups along the axis. */
export interface BoxSpec {
  id: string;
  title: string;
  x: string;
  y: string;
  groups: string[];
  series: { name: string; colour: number; values: (number | null)[][] }[];
  note: string;
}

/** The least and the most of the values that are known. */
export function extremes(values: (number | null)[]): [number, number] {
  const known = values.filter((value) => value !== null);
  return [Math.min(...known), Math.max(...known)];
}

const MARGIN = { left: 62, right: 14, top: 12, bottom: 42 };

// The dashes of a broken line; a dot is the round end of next to nothing.
const BROKEN = { dashed: [5, 4], dotted: [0.1, 5] };

// More points than this are drawn small.
const MOST_LARGE = 100;

interface Scale {
  (value: number): number;
  ticks: number[];
}

function linear(low: number, high: number, from: number, to: number): Scale {
  const span = high - low || 1;
  const step = niceStep(span / 5);
  const ticks: number[] = [];
  for (let tick = Math.ceil(low / step) * step; tick <= high + step * 1e-6; tick += step) ticks.push(+tick.toPrecision(10));
  return Object.assign((value: number) => from + ((value - low) / span) * (to - from), { ticks });
}

function niceStep(step: number): number {
  const power = 10 ** Math.floor(Math.log10(step));
  const share = step / power;
  return (share > 5 ? 10 : share > 2 ? 5 : share > 1 ? 2 : 1) * power;
}

function logarithmic(low: number, high: number, from: number, to: number): Scale {
  const [a, b] = [Math.log10(low), Math.log10(high)];
  const span = b - a || 1;
  const ticks: number[] = [];
  const every = Math.max(1, Math.ceil(span / 6));
  // If there are few powers of ten, their halves and fifths are marked as well.
  const within = span < 1 ? [1, 1.5, 2, 3, 5, 7] : span < 3 ? [1, 2, 5] : [1];
  for (let power = Math.floor(a); power <= b + 1e-9; power += every) {
    for (const part of within) {
      const tick = +(part * 10 ** power).toPrecision(2);
      if (tick >= low * (1 - 1e-9) && tick <= high * (1 + 1e-9)) ticks.push(tick);
    }
  }
  if (ticks.length < 2) ticks.splice(0, ticks.length, low, Math.sqrt(low * high), high);
  return Object.assign((value: number) => from + ((Math.log10(value) - a) / span) * (to - from), { ticks });
}

/** Makes a scale that contains all values, with a margin. */
function scale(values: number[], log: boolean, zero: boolean, from: number, to: number): Scale {
  const kept = values.filter((value) => Number.isFinite(value) && (!log || value > 0));
  if (kept.length === 0) return linear(0, 1, from, to);
  let [low, high] = [Math.min(...kept), Math.max(...kept)];
  if (log) {
    const room = low === high ? 2 : (high / low) ** 0.04;
    return logarithmic(low / room, high * room, from, to);
  }
  const room = (high - low) * 0.05 || Math.abs(high) * 0.1 || 1;
  high += room;
  low = zero && low >= 0 ? 0 : low - room;
  return linear(low, high, from, to);
}

/** A figure with its head, legend, note and data. */
function frame(
  spec: { id: string; title: string; note: string },
  name: string,
  legend: { name: string; colour: number; dash?: "" | "dashed" | "dotted"; line?: boolean }[],
  data: () => (string | number | null)[][],
  draw: (width: number, height: number) => SVGElement,
  height = 280,
): HTMLElement {
  const area = h("div", { class: "svg-area" });
  const swatches = h("ul", { class: "legend" });
  let width = 0;
  const paint = () => {
    if (width > 0) area.replaceChildren(draw(width, height));
    swatches.replaceChildren(
      ...legend.map((entry) => {
        const swatch = h("i", { class: entry.dash ? `swatch ${entry.dash}` : entry.line === false ? "swatch dot" : "swatch" });
        swatch.style.setProperty("--line", colour(entry.colour));
        return h("li", {}, h("span", {}, swatch, entry.name));
      }),
    );
  };
  onLook(area, (isRecoloured) => {
    if (Math.floor(area.clientWidth) === width && !isRecoloured) return;
    width = Math.floor(area.clientWidth);
    paint();
  });
  paint();
  return h(
    "figure",
    { class: "chart", "data-chart": spec.id },
    h("figcaption", {}, h("h3", {}, spec.title), csvButton(spec.title, `${name}-${spec.id}`, data)),
    legend.length > 1 && swatches,
    area,
    h("p", { class: "note" }, spec.note),
  );
}

function text(x: number, y: number, content: string, attributes: Record<string, unknown> = {}, whole = content): SVGElement {
  return s("text", { x, y, fill: css("--ink-2"), "font-size": 12, ...attributes }, content, ...(whole === content ? [] : [s("title", {}, whole)]));
}

/** A name, shortened to the width that it has. */
const fit = (name: string, width: number): string => (name.length * 7 <= width ? name : `${name.slice(0, Math.max(1, Math.floor(width / 7) - 1))}…`);

function axes(svg: SVGElement, width: number, height: number, x: Scale | null, y: Scale, labels: { x: string; y: string }, named?: [number, string][]): void {
  const [bottom, right] = [height - MARGIN.bottom, width - MARGIN.right];
  for (const tick of y.ticks) {
    const at = y(tick);
    svg.append(s("line", { x1: MARGIN.left, x2: right, y1: at, y2: at, stroke: css("--grid") }));
    svg.append(text(MARGIN.left - 7, at + 4, number(tick), { "text-anchor": "end" }));
  }
  let free = -Infinity;
  for (const [tick, name] of named?.length ? named : (x?.ticks ?? []).map((tick): [number, string] => [tick, number(tick)])) {
    const at = x!(tick);
    svg.append(s("line", { x1: at, x2: at, y1: MARGIN.top, y2: bottom, stroke: css("--grid") }));
    // A name that would overlap the one before is left out.
    if (at - name.length * 3.5 < free) continue;
    free = at + name.length * 3.5 + 4;
    svg.append(text(at, bottom + 17, name, { "text-anchor": "middle" }));
  }
  svg.append(text((MARGIN.left + right) / 2, height - 6, labels.x, { "text-anchor": "middle" }));
  svg.append(text(14, (MARGIN.top + bottom) / 2, labels.y, { "text-anchor": "middle", transform: `rotate(-90 14 ${(MARGIN.top + bottom) / 2})` }));
}

function canvas(width: number, height: number, label: string): SVGElement {
  return s("svg", { width, height, viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": label, "font-family": "system-ui, sans-serif" });
}

/** Lines, points and intervals. */
export function xyFigure(spec: XySpec, name: string): HTMLElement {
  const data = () => [
    ["series", spec.x.label, spec.y.label, "low", "high"],
    ...spec.series.flatMap((series) => series.x.map((x, k) => [series.name, x, series.y[k] ?? null, series.low?.[k] ?? null, series.high?.[k] ?? null])),
  ];
  return frame(spec, name, spec.series, data, (width, height) => {
    const svg = canvas(width, height, `${spec.title}: ${spec.y.label} against ${spec.x.label} for ${spec.series.map((one) => one.name).join(", ")}`);
    const numbers = (values: (number | null | undefined)[]) => values.filter((value): value is number => value !== null && value !== undefined);
    const across = spec.series.flatMap((one) => [...one.x, ...numbers(one.left ?? []), ...numbers(one.right ?? [])]);
    const all = spec.series.flatMap((one) => [...numbers(one.y), ...numbers(one.low ?? []), ...numbers(one.high ?? [])]);
    if (spec.equal) {
      width = Math.min(width, height - MARGIN.top - MARGIN.bottom + MARGIN.left + MARGIN.right);
      height = width - MARGIN.left - MARGIN.right + MARGIN.top + MARGIN.bottom;
      all.push(...across);
      across.push(...all);
    }
    const x = scale(across, spec.x.log ?? false, spec.kind === "points" && (spec.x.zero ?? true), MARGIN.left, width - MARGIN.right);
    const y = scale(all, spec.y.log ?? false, spec.y.zero ?? true, height - MARGIN.bottom, MARGIN.top);
    axes(svg, width, height, x, y, { x: spec.x.label, y: spec.y.label }, spec.x.ticks);
    const drawable = (value: number | null | undefined): value is number => value !== null && value !== undefined && Number.isFinite(value) && (!spec.y.log || value > 0);
    for (const series of spec.series) {
      const stroke = colour(series.colour);
      if (series.line ?? true) {
        let path = "";
        series.x.forEach((at, k) => {
          const value = series.y[k];
          if (drawable(value)) path += `${path && drawable(series.y[k - 1]) ? "L" : "M"}${x(at).toFixed(1)},${y(value).toFixed(1)}`;
        });
        const dashes = series.dash ? BROKEN[series.dash] : dash(series.colour);
        svg.append(s("path", { d: path, fill: "none", stroke, "stroke-width": series.dash === "dashed" ? 1.3 : 1.8, "stroke-linecap": series.dash === "dotted" ? "round" : undefined, "stroke-dasharray": dashes.join(" ") || undefined }));
      }
      if (series.points ?? true) {
        const radius = series.x.length > MOST_LARGE ? 1.7 : 4;
        series.x.forEach((at, k) => {
          const [value, low, high, left, right] = [series.y[k], series.low?.[k], series.high?.[k], series.left?.[k], series.right?.[k]];
          if (!drawable(value)) return;
          if (drawable(low) && drawable(high)) {
            const [px, py, qy] = [x(at), y(low), y(high)];
            svg.append(s("path", { d: `M${px},${py}V${qy}M${px - 4},${py}h8M${px - 4},${qy}h8`, stroke, "stroke-width": 1.2 }));
          }
          if (drawable(left) && drawable(right)) {
            const [px, qx, py] = [x(left), x(right), y(value)];
            svg.append(s("path", { d: `M${px},${py}H${qx}M${px},${py - 4}v8M${qx},${py - 4}v8`, stroke, "stroke-width": 1.2 }));
          }
          const interval = drawable(low) && drawable(high) ? `, 95 % interval ${number(low)} to ${number(high)}` : "";
          const tip = s("title", {}, `${series.name}: ${number(value)} at ${number(at)}${interval}`);
          svg.append(s("circle", { cx: x(at), cy: y(value), r: radius, fill: stroke, stroke: css("--paper"), "stroke-width": radius > 2 ? 1.2 : 0 }, tip));
        });
      }
    }
    return svg;
  }, spec.equal ? 380 : undefined);
}

function quantile(sorted: number[], share: number): number {
  const at = (sorted.length - 1) * share;
  const [low, high] = [sorted[Math.floor(at)]!, sorted[Math.ceil(at)]!];
  return low + (high - low) * (at - Math.floor(at));
}

/** Boxes from the first to the third quartile with the median; whiskers to the extremes; every value as a point. */
export function boxFigure(spec: BoxSpec, name: string): HTMLElement {
  const data = () => [[spec.x, "series", spec.y], ...spec.groups.flatMap((group, g) => spec.series.flatMap((one) => one.values[g]!.map((value) => [group, one.name, value])))];
  return frame(spec, name, spec.series, data, (width, height) => {
    const svg = canvas(width, height, `${spec.title}: box plots of ${spec.y} for each ${spec.x}`);
    const all = spec.series.flatMap((one) => one.values.flat()).filter((value): value is number => value !== null);
    const y = scale(all, false, false, height - MARGIN.bottom, MARGIN.top);
    axes(svg, width, height, null, y, { x: spec.x, y: spec.y });
    const room = (width - MARGIN.left - MARGIN.right) / spec.groups.length;
    const box = Math.min(46, (room * 0.8) / spec.series.length);
    spec.groups.forEach((group, g) => {
      const middle = MARGIN.left + room * (g + 0.5);
      svg.append(text(middle, height - MARGIN.bottom + 17, fit(group, room - 6), { "text-anchor": "middle" }, group));
      spec.series.forEach((series, k) => {
        const values = series.values[g]!.filter((value): value is number => value !== null).sort((a, b) => a - b);
        if (values.length === 0) return;
        const at = middle + (k - (spec.series.length - 1) / 2) * box;
        const [least, first, median, third, most] = [0, 0.25, 0.5, 0.75, 1].map((share) => y(quantile(values, share))) as [number, number, number, number, number];
        const stroke = colour(series.colour);
        const half = box * 0.36;
        const tip = s("title", {}, `${series.name}, ${group}: median ${number(quantile(values, 0.5))} of ${values.length} runs`);
        svg.append(
          s("path", { d: `M${at},${least}V${first}M${at},${third}V${most}M${at - half / 2},${least}h${half}M${at - half / 2},${most}h${half}`, stroke, "stroke-width": 1.2 }),
          s("rect", { x: at - half, width: 2 * half, y: third, height: Math.max(1, first - third), fill: stroke + "2b", stroke, "stroke-width": 1.2 }, tip),
          s("line", { x1: at - half, x2: at + half, y1: median, y2: median, stroke, "stroke-width": 2.4 }),
          ...values.map((value, n) => s("circle", { cx: at + ((n % 5) - 2) * half * 0.25, cy: y(value), r: 1.8, fill: stroke, "fill-opacity": 0.65 })),
        );
      });
    });
    return svg;
  });
}

// Cividis, whose lightness increases evenly for all readers (Nuñez, Anderton and Renslow 2018), at nine points.
const CIVIDIS = [
  [0, 34, 78], [35, 62, 108], [79, 87, 108], [112, 113, 115], [145, 140, 120], [180, 169, 114], [208, 192, 99], [235, 217, 80], [254, 232, 56],
] as const;

function cividis(share: number): [number, number, number] {
  const at = Math.min(0.9999, Math.max(0, share)) * (CIVIDIS.length - 1);
  const [a, b, t] = [CIVIDIS[Math.floor(at)]!, CIVIDIS[Math.floor(at) + 1]!, at - Math.floor(at)];
  return [0, 1, 2].map((k) => Math.round(a[k]! + (b[k]! - a[k]!) * t)) as [number, number, number];
}

/** A colour and a number for each cell. `low` and `high` are the values of the first and of the last colour. */
export function heatFigure(spec: Omit<CellsSpec, "kind">, name: string, [low, high] = extremes(spec.values.flat())): HTMLElement {
  const data = () => [[spec.y, ...spec.columns], ...spec.rows.map((row, r) => [row, ...spec.values[r]!])];
  const height = Math.max(140, 40 * spec.rows.length + 60);
  return frame(spec, name, [], data, (width) => {
    const svg = canvas(width, height, `${spec.title}: a heat map of ${spec.y} and ${spec.x}`);
    // Three digits of the largest, and as many decimals for all.
    const decimals = Math.max(0, Math.min(4, 2 - Math.floor(Math.log10(Math.max(Math.abs(low), Math.abs(high)) || 1))));
    const left = Math.min(150, 24 + 7.2 * Math.max(...spec.rows.map((label) => label.length)));
    const [cellWidth, cellHeight] = [(width - left - 12) / spec.columns.length, (height - 54) / spec.rows.length];
    spec.rows.forEach((row, r) => {
      const top = 8 + r * cellHeight;
      svg.append(text(left - 8, top + cellHeight / 2 + 4, fit(row, left - 12), { "text-anchor": "end" }, row));
      spec.columns.forEach((column, c) => {
        const value = spec.values[r]![c] ?? null;
        const x = left + c * cellWidth;
        const [red, green, blue] = value === null ? (isDark() ? [50, 50, 50] : [235, 235, 235]) : cividis((value - low) / (high - low || 1));
        const tip = s("title", {}, `${row}, ${column}: ${number(value)} ${spec.unit}`);
        svg.append(s("rect", { x: x + 1, y: top + 1, width: Math.max(1, cellWidth - 2), height: cellHeight - 2, rx: 3, fill: `rgb(${red} ${green} ${blue})` }, tip));
        if (cellWidth > 38) {
          const light = value !== null && 0.3 * red! + 0.6 * green! + 0.1 * blue! < 130;
          svg.append(text(x + cellWidth / 2, top + cellHeight / 2 + 4, value === null ? "–" : value.toFixed(decimals), { "text-anchor": "middle", fill: light ? "#fff" : "#111", "pointer-events": "none" }));
        }
      });
    });
    spec.columns.forEach((column, c) => svg.append(text(left + (c + 0.5) * cellWidth, height - 28, fit(column, cellWidth), { "text-anchor": "middle" }, column)));
    svg.append(text(left + (width - left - 12) / 2, height - 8, spec.x, { "text-anchor": "middle" }));
    return svg;
  }, height);
}
