// Scenarios to start from. Everything in them can be changed.

import type { Table } from "./api";

export const PRESETS: { name: string; document: Table }[] = [
  {
    name: "Dumbbell: two flows, one bottleneck",
    document: {
      name: "two-flows",
      duration: "60 s",
      path: { rate: "100 Mbit/s", rtt: "82 ms", buffer: "20% bdp" },
      flow: [{ cc: "htcp" }, { cc: "htcp", start: "17 s" }],
    },
  },
  {
    name: "Dumbbell: new beside standard TCP",
    document: {
      name: "friendliness",
      duration: "60 s",
      path: { rate: "100 Mbit/s", rtt: "40 ms", buffer: "50% bdp" },
      flow: [{ cc: "scalable" }, { cc: "reno", start: "5 s" }],
    },
  },
  {
    name: "Dumbbell: unequal round-trip times",
    document: {
      name: "unequal-rtts",
      duration: "60 s",
      path: { rate: "100 Mbit/s", rtt: "20 ms", buffer: "100% bdp" },
      flow: [{ cc: "cubic" }, { cc: "cubic", rtt: "100 ms" }],
    },
  },
  {
    name: "Parking lot: three bottlenecks",
    document: {
      name: "parking-lot",
      duration: "60 s",
      link: [
        { name: "first", from: "a", to: "b", rate: "50 Mbit/s", delay: "10 ms", buffer: "100% bdp" },
        { name: "second", from: "b", to: "c", rate: "50 Mbit/s", delay: "10 ms", buffer: "100% bdp" },
        { name: "third", from: "c", to: "d", rate: "50 Mbit/s", delay: "10 ms", buffer: "100% bdp" },
      ],
      flow: [
        { cc: "htcp", from: "a", to: "d", label: "long" },
        { cc: "htcp", from: "a", to: "b", label: "over first", start: "5 s" },
        { cc: "htcp", from: "b", to: "c", label: "over second", start: "10 s" },
        { cc: "htcp", from: "c", to: "d", label: "over third", start: "15 s" },
      ],
    },
  },
];
