// Scenarios to start from. Everything in them can be changed.

import type { Table } from "./api";

interface Preset {
  name: string;
  document: Table;
}

/** One bottleneck between all senders and all receivers. */
const dumbbell = (what: string, name: string, [rate, rtt, buffer]: [string, string, string], flow: Table[]): Preset => ({
  name: `Dumbbell: ${what}`,
  document: { name, duration: "60 s", path: { rate, rtt, buffer }, flow },
});

const hop = (name: string, from: string, to: string): Table => ({ name, from, to, rate: "50 Mbit/s", delay: "10 ms", buffer: "100% bdp" });
const over = (from: string, to: string, more: Table): Table => ({ cc: "htcp", from, to, ...more });

export const PRESETS: Preset[] = [
  dumbbell("two flows, one bottleneck", "two-flows", ["100 Mbit/s", "82 ms", "20% bdp"], [{ cc: "htcp" }, { cc: "htcp", start: "17 s" }]),
  dumbbell("high-speed and standard TCP", "friendliness", ["100 Mbit/s", "40 ms", "50% bdp"], [{ cc: "scalable" }, { cc: "reno", start: "5 s" }]),
  dumbbell("unequal round-trip times", "unequal-rtts", ["100 Mbit/s", "20 ms", "100% bdp"], [{ cc: "cubic" }, { cc: "cubic", rtt: "100 ms" }]),
  {
    name: "Parking lot: three bottlenecks",
    document: {
      name: "parking-lot",
      duration: "60 s",
      link: [hop("first", "a", "b"), hop("second", "b", "c"), hop("third", "c", "d")],
      flow: [
        over("a", "d", { label: "long" }),
        over("a", "b", { label: "over first", start: "5 s" }),
        over("b", "c", { label: "over second", start: "10 s" }),
        over("c", "d", { label: "over third", start: "15 s" }),
      ],
    },
  },
];
