// The content of a report or a results page. `python/elephan/report/content.py` makes it; its types are declared here.

/** Numbers as little-endian floats in base64, or as plain numbers. */
export type Packed = { f32: string } | { f64: string } | (number | null)[];

/** A line over time. */
export interface Line {
  name: string;
  values: Packed;
  /** Number of its colour; lines of one flow share it. */
  colour: number;
  /** Drawn thin and dotted, because it accompanies another line. */
  minor?: boolean;
}

/** A chart over time. */
export interface TimeSpec {
  id: string;
  title: string;
  unit: string;
  /** What is measured, and what it counts. */
  meaning: string;
  x: Packed;
  lines: Line[];
  /** What thinning did, and what is not shown. */
  note: string;
  steps?: boolean;
}

/** Charts that are zoomed together. */
export interface TimeGroup {
  title: string;
  charts: TimeSpec[];
}

/** A table with a head; cells are text. Numbers are aligned to the right. */
export interface Table {
  title: string;
  head: { text: string; unit?: string; numeric?: boolean }[];
  rows: string[][];
  note?: string;
}

/** Runs with their settings and metrics, which can be plotted along any of their keys. */
export interface Runs {
  title: string;
  keys: { name: string; numeric: boolean }[];
  metrics: { name: string; unit: string; meaning: string }[];
  /** Settings as in the file, one for each key. */
  settings: (string | number | boolean | null)[][];
  /** The keys' values as numbers in SI units, for axes; null if they are words. */
  axis: (number | null)[][];
  /** In the metrics' units. */
  values: (number | null)[][];
  /** Two-sided 95 % quantiles of Student's t by degrees of freedom, from 1. */
  t95: number[];
}

/** Lines and points, with theory over simulation. */
export interface XySpec {
  id: string;
  title: string;
  x: { label: string; log?: boolean; ticks?: [number, string][] };
  y: { label: string; log?: boolean; zero?: boolean };
  series: { name: string; colour: number; x: number[]; y: (number | null)[]; low?: (number | null)[]; high?: (number | null)[]; line?: boolean; points?: boolean; dashed?: boolean }[];
  note: string;
}

/** The entire content. */
export interface Content {
  kind: "run" | "comparison" | "sweep" | "reproduction";
  title: string;
  subtitle: string;
  facts: [string, string][];
  command: string;
  tiles: { name: string; value: string; unit: string; meaning: string }[];
  tables: Table[];
  groups: TimeGroup[];
  runs: Runs | null;
  figures: XySpec[];
  /** Existing pictures, and their data as CSV. */
  pictures: { title: string; url: string; csv: string }[];
  notes: string[];
  scenario: string;
}

/** The numbers. Gaps are NaN. */
export function unpack(packed: Packed): Float64Array | Float32Array {
  if (Array.isArray(packed)) return Float64Array.from(packed, (value) => value ?? NaN);
  const text = "f32" in packed ? packed.f32 : packed.f64;
  const bytes = Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
  return "f32" in packed ? new Float32Array(bytes.buffer) : new Float64Array(bytes.buffer);
}
