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
  time_s: Packed;
  lines: Line[];
  /** What thinning did, what was averaged, and what is not shown. */
  note: string;
  /** Whether a value holds from the time before until its own. */
  steps?: boolean;
  until_s: number;
  /** The measuring window. */
  window: [number, number] | null;
  marks: Mark[];
}

/** Something that happened at a time, such as a new rate of a link. */
export interface Mark {
  time_s: number;
  text: string;
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
  /** Row and column of the cells that are notably the best; the note says what that means. */
  marked?: [number, number][];
}

/** Runs with their settings and metrics, which can be plotted along any of their keys. */
export interface Runs {
  title: string;
  /** The label and the scale of each key's axis, and the text there of each value: one unit is in the label alone. */
  keys: { name: string; numeric: boolean; label: string; log: boolean; texts: Record<string, string> }[];
  /** `key` is the name for commands. */
  metrics: { name: string; key: string; title: string; label: string; unit: string; meaning: string }[];
  /** Settings as text, one for each key. */
  settings: string[][];
  /** The keys' values as numbers in the unit of the axis; null if they are words. */
  axis: (number | null)[][];
  /** In the metrics' units. */
  values: (number | null)[][];
  /** Two-sided 95 % quantiles of Student's t by degrees of freedom, from 1. */
  t95: number[];
}

/** A value for each pair of settings; rows from the top. */
export interface CellsSpec {
  kind: "cells";
  id: string;
  title: string;
  x: string;
  columns: string[];
  y: string;
  rows: string[];
  values: (number | null)[][];
  unit: string;
  note: string;
}

/** Lines and points, with theory over simulation. */
export interface XySpec {
  kind?: "points";
  id: string;
  title: string;
  x: { label: string; log?: boolean; zero?: boolean; ticks?: [number, string][] };
  y: { label: string; log?: boolean; zero?: boolean };
  /** Whether both axes have one scale, of the same length. */
  equal?: boolean;
  series: { name: string; colour: number; x: number[]; y: (number | null)[]; low?: (number | null)[]; high?: (number | null)[]; left?: (number | null)[]; right?: (number | null)[]; line?: boolean; points?: boolean; dash?: "" | "dashed" | "dotted" }[];
  note: string;
}

/** A figure of a run, as text. */
export type Tile = { name: string; value: string; unit: string; meaning: string };

/** The entire content. */
export interface Content {
  kind: "run" | "comparison" | "difference" | "sweep" | "path" | "host" | "reproduction";
  title: string;
  subtitle: string;
  facts: [string, string][];
  command: string;
  tiles: Tile[];
  tables: Table[];
  groups: TimeGroup[];
  runs: Runs | null;
  figures: (XySpec | CellsSpec)[];
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
