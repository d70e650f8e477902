// Reduces the number of points without hiding a peak: keeps the smallest and the largest value of each bin, in their original order.

/** Numbers in order. */
export type Column = ArrayLike<number>;

/** The first index of an ascending column whose value is not below `value`. */
export function lowerBound(column: Column, value: number): number {
  let [low, high] = [0, column.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (column[middle]! < value) low = middle + 1;
    else high = middle;
  }
  return low;
}

const finite = (value: number): number | null => (Number.isFinite(value) ? value : null);

/**
 * Rows `from` to `to` of the columns with at most about `2 * bins` points. Lines share the times of their bins, so a time is off by
 * less than a bin. Values that are not finite become gaps.
 */
export function thin(x: Column, lines: Column[], from: number, to: number, bins: number): { x: number[]; lines: (number | null)[][]; thinned: boolean } {
  const rows = Math.max(0, to - from);
  if (rows <= 2 * bins) {
    const part = <T>(column: Column, of: (value: number) => T) => Array.from({ length: rows }, (_, k) => of(column[from + k]!));
    return { x: part(x, (time) => time), lines: lines.map((line) => part(line, finite)), thinned: false };
  }
  const outX: number[] = [];
  const out: (number | null)[][] = lines.map(() => []);
  for (let bin = 0; bin < bins; bin++) {
    const first = from + Math.floor((bin * rows) / bins);
    const end = from + Math.floor(((bin + 1) * rows) / bins);
    outX.push(x[first]!, x[end - 1]!);
    lines.forEach((line, k) => {
      let [least, most, leastAt, mostAt] = [Infinity, -Infinity, -1, -1];
      for (let row = first; row < end; row++) {
        const value = line[row]!;
        if (value < least) [least, leastAt] = [value, row];
        if (value > most && value < Infinity) [most, mostAt] = [value, row];
      }
      const pair = leastAt <= mostAt ? [least, most] : [most, least];
      out[k]!.push(finite(pair[0]!), finite(pair[1]!));
    });
  }
  return { x: outX, lines: out, thinned: true };
}
