// Starts `elephan` and a browser for the tests and the screenshots.
import { execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { chromium } from "playwright-core";

/** How long a step may take, in milliseconds, on the slowest machine: far more than on most. */
export const PATIENCE_MS = 180_000;

const ELEPHAN = process.env.ELEPHAN ?? "elephan";

/** Runs a command to its end. */
export const elephan = (...words) => execFileSync(ELEPHAN, words);

/** A server on `results`; `port` 0 selects a free one. */
export async function serve(results, port = 0) {
  const child = spawn(ELEPHAN, ["ui", "--results", results, "--port", String(port), "--no-browser"], { stdio: ["ignore", "pipe", "inherit"] });
  for await (const line of createInterface(child.stdout)) {
    const found = /http:\S+/.exec(line);
    if (found) return { url: found[0], port: Number(new URL(found[0]).port), stop: () => stop(child) };
  }
  throw new Error("elephan ui: expected an address, found none");
}

async function stop(child) {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const ended = once(child, "exit");
  child.kill("SIGKILL");
  await ended;
}

/** The browser of Debian. */
export function launch() {
  return chromium.launch({ executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium", args: ["--no-sandbox"] });
}
