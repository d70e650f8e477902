// What holds for a link at a time of a run.

import type { Json, Table } from "./api";
import { quantity } from "./quantity";

/** Rate, delay, losses and state of a link, as a change of it would give them; empty where the scenario says nothing of them. */
export function present(document: Table, link: string, time_s: number): Table {
  const known = (values: Record<string, Json | undefined>): Table => Object.fromEntries(Object.entries(values).filter(([, value]) => value !== undefined)) as Table;
  const changes = ((document["event"] as Table[] | undefined) ?? []).filter((event) => event["link"] === link && (quantity(event["at"]) ?? 0) <= time_s);
  const now = Object.assign({ up: true }, known(initial(document, link)), ...changes.map(({ at: _, link: __, weights: ___, ...rest }) => rest)) as Table;
  return now;
}

function initial(document: Table, link: string): Record<string, Json | undefined> {
  const path = document["path"] as Table | undefined;
  if (!path) {
    const { rate, delay, loss } = ((document["link"] as Table[] | undefined) ?? []).find((one) => one["name"] === link) ?? {};
    return { rate, delay, loss };
  }
  if (link !== "bottleneck" && link !== "bottleneck.reverse") return {};
  // What a flow's round-trip time is longer than the shortest is the delay of its access links.
  const flows = (document["flow"] as Table[] | undefined) ?? [];
  const rtts = flows.map((flow) => flow["rtt"] ?? path["rtt"]).map(quantity).filter((value) => value !== null);
  const delay = rtts.length > 0 ? `${+(Math.min(...rtts) * 500).toPrecision(12)} ms` : undefined;
  const reverse = link === "bottleneck" ? {} : ((path["reverse"] as Table | undefined) ?? {});
  return { rate: reverse["rate"] ?? path["rate"], delay, loss: link === "bottleneck" ? path["loss"] : reverse["loss"] };
}
