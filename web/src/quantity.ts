// Times and rates as scenario files write them.

import type { Json } from "./api";

const TIMES: Record<string, number> = { ps: 1e-12, ns: 1e-9, us: 1e-6, µs: 1e-6, ms: 1e-3, s: 1, min: 60, h: 3600 };
const RATES: Record<string, number> = { "": 1, k: 1e3, M: 1e6, G: 1e9, T: 1e12 };

const decimal = (text: string): number => Number(text.replaceAll("_", ""));

/** The value of a time in seconds, or of a rate in bit/s; null if the text is neither. */
export function quantity(text: Json | undefined): number | null {
  if (typeof text !== "string") return null;
  const time = /^([0-9._]+) ?(ps|ns|us|µs|ms|s|min|h)$/.exec(text.trim());
  if (time) return decimal(time[1]!) * TIMES[time[2]!]!;
  const rate = /^([0-9._]+) ?([kMGT]?)(bit\/s|bps)$/.exec(text.trim());
  return rate ? decimal(rate[1]!) * RATES[rate[2]!]! : null;
}

const round = (value: number): number => +value.toPrecision(value >= 100 ? 3 : 2);

/** A time of a slider, as text. */
export const timeText = (value: number): string => (value < 1 ? `${round(value * 1e3)} ms` : `${round(value)} s`);

/** A rate of a slider, as text. */
export const rateText = (value: number): string => (value >= 1e9 ? `${round(value / 1e9)} Gbit/s` : `${round(value / 1e6)} Mbit/s`);

/** A share of the bandwidth-delay product of a slider, as text. */
export const shareText = (value: number): string => `${round(value)}% bdp`;
