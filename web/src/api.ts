// Requests to the server, and its responses. Errors use the words of the command line.

import { h } from "./dom";

export type Json = null | boolean | number | string | Json[] | { [key: string]: Json };
export type Table = { [key: string]: Json };

export interface Mistake {
  key: string;
  problem: string;
}

/** A chart of a run over time: title, unit and meaning are declared with its column; values times `factor` are in that unit. */
export interface ChartEntry {
  of: "flows" | "links";
  id: string;
  title: string;
  unit: string;
  meaning: string;
  /** Empty if the page computes it from several columns. */
  column: string;
  factor: number;
  /** Whether means are drawn, not samples. */
  mean: boolean;
}

/** An algorithm that a flow's `cc` can name; `group` is the title of those with which it is listed. */
export interface Algorithm {
  name: string;
  title: string;
  group: string;
}

export interface About {
  version: string;
  boot: string;
  schema: Table;
  algorithms: Algorithm[];
  charts: ChartEntry[];
}

export interface RunState {
  id: string;
  name: string;
  state: "running" | "paused" | "cancelling" | "done" | "cancelled" | "failed";
  time_s: number;
  duration_s: number;
  is_saved: boolean;
}

export interface ResultEntry {
  name: string;
  kind: string;
  title: string;
  written: string;
  /** The reason why it cannot be read; empty if it can. */
  problem: string;
}

/** The errors of a refused request, line by line. */
class Refusal extends Error {
  constructor(
    readonly status: number,
    readonly mistakes: Mistake[],
  ) {
    super(mistakes.map(({ problem }) => problem).join("\n"));
  }
}

/** Whether a request was refused because the server has another token. */
export const isShut = (error: unknown): boolean => error instanceof Refusal && error.status === 401;

/** The errors of a refused request. */
export function mistakesOf(error: unknown): Mistake[] {
  if (error instanceof Refusal) return error.mistakes;
  throw error;
}

/** Errors as paragraphs. */
export const paragraphs = (mistakes: Mistake[]): HTMLElement[] => mistakes.map(({ key, problem }) => h("p", {}, key ? `${key}: ${problem}` : problem));

async function ask(path: string, body?: unknown): Promise<Response> {
  const options = body === undefined ? {} : { method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify(body) };
  const answer = await fetch(path, options).catch(() => {
    throw new Refusal(0, [{ key: "", problem: "The server does not answer." }]);
  });
  if (answer.ok) return answer;
  const told = (await answer.json().catch(() => null)) as { mistakes?: Mistake[] } | null;
  throw new Refusal(answer.status, told?.mistakes ?? [{ key: "", problem: `The server answered ${answer.status}.` }]);
}

const json = async <T>(path: string, body?: unknown): Promise<T> => (await (await ask(path, body)).json()) as T;

export const api = {
  about: () => json<About>("/api/about"),
  check: (document: Table) => json<{ mistakes: Mistake[] }>("/api/check", { document }),
  file: async (document: Table) => (await ask("/api/file", { document })).text(),
  open: (text: string) => json<{ document: Table }>("/api/open", { text }),
  runs: () => json<RunState[]>("/api/runs"),
  start: (document: Table, speed: number, save = true) => json<RunState>("/api/runs", { document, speed, save }),
  control: (id: string, what: { pause?: boolean; speed?: number; cancel?: boolean }) => json<RunState>(`/api/runs/${id}/control`, what),
  change: (id: string, what: Table) => json<{ document: Table }>(`/api/runs/${id}/change`, what),
  results: () => json<ResultEntry[]>("/api/results"),
  content: <T>(names: string[]) => json<T>(`/api/content?${names.map((name) => `name=${encodeURIComponent(name)}`).join("&")}`),
  reportUrl: (name: string) => `/api/report?name=${encodeURIComponent(name)}`,
};
