// What holds for a link at a time of a run.

import type { Table } from "./api";

/** A link of a run, and its rate, delay and losses before they change. */
export interface Link {
  name: string;
  rate_bit_s: number | null;
  initial: Table;
}

/** Rate, delay, losses and state of a link, as a change of it would give them. */
export function present(links: Link[], changes: Table[], link: string, time_s: number): Table {
  const known = (values: Table): Table => Object.fromEntries(Object.entries(values).filter(([, value]) => value !== null));
  const until = changes.filter((change) => change["link"] === link && Number(change["at_s"]) <= time_s);
  return Object.assign({ up: true }, known(links.find((one) => one.name === link)?.initial ?? {}), ...until.map(({ at_s: _, link: __, weights: ___, ...rest }) => known(rest))) as Table;
}
