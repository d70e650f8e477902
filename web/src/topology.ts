// A drawing of the network during a run: links with their queues, and the flows over them.

import type { Table } from "./api";
import { h, s } from "./dom";
import { MOST_LINES, type Plan } from "./live";
import { colour, onLook } from "./theme";

/** A link as it is drawn. */
interface Link {
  name: string;
  from: string;
  to: string;
  rate: string;
}

/** What moves in the drawing. */
export interface Moment {
  /** By name of the link: waiting packets, the most so far, and whether packets were dropped or lost since the last sample. */
  queues: Map<string, { packets: number; most: number; drops: boolean }>;
  /** Goodput of each flow in bit/s; undefined before it starts. */
  goodput: (number | undefined)[];
  /** By name of the link: its rate, or that it is down. */
  rates: Map<string, string>;
}

/** The links of a scenario's file, and the nodes that each of the first flows passes. */
function network({ document, links: all, routes }: Plan, rates: Moment["rates"]): { links: Link[]; routes: string[][] } {
  const path = document["path"] as Table | undefined;
  const tables = path ? [{ name: "bottleneck", from: "a", to: "b" }] : (document["link"] as Table[]);
  const links = tables.map(({ name, from, to }) => ({ name: String(name), from: String(from), to: String(to), rate: rates.get(String(name)) ?? "" }));
  const ends = new Map([...links.map(({ name, from, to }) => [`${name}.reverse`, [to, from]] as const), ...links.map(({ name, from, to }) => [name, [from, to]] as const)]);
  // Links of the plan that are none of these are those of hosts, which are not drawn.
  const nodes = (route: number[]) => route.flatMap((link) => ends.get(all[link]!.name) ?? []).filter((node, k, passed) => node !== passed[k - 1]);
  return { links, routes: routes.slice(0, MOST_LINES).map(nodes) };
}

/** The column of each node: one more than that of the node before it on the first route that has it. */
function columns(links: Link[], routes: string[][]): Map<string, number> {
  const column = new Map<string, number>();
  const longest = [...routes].sort((a, b) => b.length - a.length);
  for (const nodes of [...longest, ...links.map((link) => [link.from, link.to])]) {
    nodes.forEach((node, k) => {
      if (!column.has(node)) column.set(node, k === 0 ? 0 : column.get(nodes[k - 1]!)! + 1);
    });
  }
  return column;
}

const [LANE, FAN, QUEUE_HEIGHT] = [5, 17, 20];

/** The drawing of a run's network. */
export class Topology {
  readonly element = h("figure", { class: "chart topology" }, h("figcaption", {}, h("h3", {}, "Network", h("small", {}, " queues and goodput, now"))));
  private readonly area = h("div", { class: "svg-area" });
  private shown = "";
  private plan: Plan | null = null;
  private parts: { fills: Map<string, { rect: SVGElement; text: SVGElement; box: SVGElement; width: number }>; lines: SVGElement[] } = { fills: new Map(), lines: [] };
  private moment: Moment = { queues: new Map(), goodput: [], rates: new Map() };

  constructor() {
    this.element.append(this.area);
    onLook(this.area, () => this.draw());
  }

  /** Shows a scenario, and what moves in it. */
  update(plan: Plan, moment: Moment): void {
    this.moment = moment;
    const shown = JSON.stringify([plan.document["path"], plan.document["link"], plan.routes, plan.labels, [...moment.rates]]);
    this.plan = plan;
    if (shown !== this.shown) {
      this.shown = shown;
      this.draw();
    }
    this.move();
  }

  private draw(): void {
    const width = Math.floor(this.area.clientWidth);
    if (!this.plan || width === 0) return;
    const { document, labels } = this.plan;
    const { links, routes } = network(this.plan, this.moment.rates);
    const column = columns(links, routes);
    // All are drawn from left to right, whatever their direction.
    const lanes = routes.map((nodes, k) => ({ nodes: column.get(nodes[0]!)! > column.get(nodes.at(-1)!)! ? [...nodes].reverse() : nodes, k }));
    const inColumn = new Map<number, string[]>();
    for (const [node, at] of column) inColumn.set(at, [...(inColumn.get(at) ?? []), node]);
    const last = Math.max(1, ...column.values());
    const rows = Math.max(1, ...[...inColumn.values()].map((nodes) => nodes.length));
    const isNarrow = width < 560;
    const [left, right] = isNarrow ? [92, 26] : [156, 48];
    const joins = lanes.some(({ nodes }) => column.get(nodes[0]!) !== 0 || column.get(nodes.at(-1)!) !== last);
    const band = Math.max(joins ? 118 : 84, FAN * lanes.length + 40);
    const height = band * rows;
    const radius = Math.max(8, (LANE * lanes.length) / 2 + 5);
    const place = (node: string): [number, number] => {
      const beside = inColumn.get(column.get(node)!)!;
      return [left + (column.get(node)! * (width - left - right)) / last, (height * (beside.indexOf(node) + 0.5)) / beside.length];
    };
    const names = routes.map((_, k) => `flow ${k + 1}: ${labels[k]!}`);
    const title = `The network: ${links.map((link) => `link ${link.name}${link.rate ? `, ${link.rate}` : ""}`).join("; ")}. Flows: ${names.join(", ")}.`;
    const svg = s("svg", { width, height, viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": title });
    const text = (x: number, y: number, of: string, anchor = "middle", kind = "") => s("text", { x, y, "text-anchor": anchor, class: kind }, of);
    this.parts = { fills: new Map(), lines: [] };
    const ends = (link: Link) => [place(link.from), place(link.to)].sort(([one], [other]) => one - other) as [[number, number], [number, number]];
    const drawn = links.filter((link) => column.has(link.from) && column.has(link.to) && !links.some((other) => other.from === link.to && other.to === link.from && links.indexOf(other) < links.indexOf(link)));
    for (const link of drawn) {
      const [[x, y], [to, end]] = ends(link);
      svg.append(s("line", { x1: x, y1: y, x2: to, y2: end, class: "pipe", "stroke-width": LANE * lanes.length + 6 }));
    }
    for (const { nodes, k } of lanes) {
      const [lane, fan] = [LANE, FAN].map((apart) => (k - (lanes.length - 1) / 2) * apart) as [number, number];
      const [[x, y], [to, end]] = [place(nodes[0]!), place(nodes.at(-1)!)];
      const isFirst = column.get(nodes[0]!) === 0;
      const isLast = column.get(nodes.at(-1)!) === last;
      // A flow that joins or leaves between two links does so from below, where no link is.
      const start: [number, number] = isFirst ? [x - 34, y + fan] : [x - 22, y + 40 + Math.abs(lane)];
      const stop: [number, number] = isLast ? [to + right - 10, end + fan] : [to + 22, end + 40 + Math.abs(lane)];
      const points = [start, ...nodes.map(place).map(([px, py]): [number, number] => [px, py + lane]), stop];
      const line = s("polyline", { points: points.map((point) => point.join(",")).join(" "), fill: "none", stroke: colour(k), "stroke-linejoin": "round", "stroke-linecap": "round" }, s("title", {}, names[k]!));
      this.parts.lines[k] = line;
      svg.append(line, s("circle", { cx: start[0], cy: start[1], r: 3.5, fill: colour(k) }), s("circle", { cx: stop[0], cy: stop[1], r: 3.5, fill: colour(k) }));
      // Where there is little room, the number of the flow is enough; its colour is in the legends.
      const called = isNarrow ? names[k]!.split(":")[0]! : names[k]!;
      const name = called.length > 18 ? `${called.slice(0, 17)}…` : called;
      svg.append(text(start[0] - 8, start[1] + 4, name, "end", isFirst ? "" : "small"));
    }
    for (const link of drawn) {
      const [[x, y], [to, end]] = ends(link);
      const [reach, rise] = [to - x, end - y];
      const size = Math.min(76, (reach - 2 * radius) * 0.6);
      const [qx, qy] = [x + radius + Math.min(20, reach * 0.06), y + rise * 0.2 - QUEUE_HEIGHT / 2];
      const tall = Math.max(QUEUE_HEIGHT, LANE * lanes.length + 8);
      const top = qy - (tall - QUEUE_HEIGHT) / 2;
      const box = s("rect", { x: qx, y: top, width: size, height: tall, rx: 3, class: "queue" });
      const rect = s("rect", { x: qx + size, y: top, width: 0, height: tall, rx: 3, class: "fill" });
      const count = text(qx + size / 2, top + tall + 15, "", "middle", "small");
      svg.append(box, rect, count);
      // Where there is no room beside the queue, the rate is in its place of the link's settings only.
      if (reach > 170) svg.append(text((qx + size + to) / 2, y + rise * 0.6 - tall / 2 - 5, link.rate, "middle"));
      if (document["path"] === undefined) svg.append(text(qx + size / 2, top - 5, link.name, "middle", "small"));
      this.parts.fills.set(link.name, { rect, text: count, box, width: size });
    }
    for (const node of column.keys()) {
      const [x, y] = place(node);
      svg.append(s("circle", { cx: x, cy: y, r: radius, class: "node" }));
    }
    if (labels.length > MOST_LINES) svg.append(text(8, height - 6, `the first ${MOST_LINES} of ${labels.length} flows`, "start", "small"));
    this.area.replaceChildren(svg);
    this.move();
  }

  private move(): void {
    for (const [name, { rect, text, box, width }] of this.parts.fills) {
      const now = this.moment.queues.get(name);
      const share = now && now.most > 0 ? now.packets / now.most : 0;
      const x = Number(box.getAttribute("x"));
      rect.setAttribute("width", String(share * width));
      rect.setAttribute("x", String(x + (1 - share) * width));
      box.classList.toggle("drops", now?.drops ?? false);
      text.textContent = now ? `${now.packets} of ${now.most}` : "";
    }
    const most = Math.max(1, ...this.moment.goodput.map((value) => value ?? 0));
    this.parts.lines.forEach((line, k) => {
      const value = this.moment.goodput[k];
      line.setAttribute("stroke-width", String(value === undefined ? 1 : 1 + 4 * (value / most)));
      line.setAttribute("stroke-opacity", value ? "1" : "0.35");
    });
  }
}
