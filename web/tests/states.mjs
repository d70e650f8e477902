// Leads a page through all its states, for the check of accessibility and for the pictures of the documentation.
import { mkdirSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { elephan, PATIENCE_MS, serve } from "./server.mjs";

/** Calls `look(name)` in each state of the page, with a server of its own on `folder`, which is empty. */
export async function everyState(page, folder, look) {
  const results = `${folder}/results`;
  mkdirSync(results);
  const server = await serve(results);
  page.setDefaultTimeout(PATIENCE_MS);
  const origin = `http://127.0.0.1:${server.port}`;
  const state = (name) => page.waitForSelector(`.state[data-state=${name}]`);
  const field = (key) => page.locator(`[data-key="${key}"] > input[type=text]`);
  const speed = (value) => page.selectOption("[aria-label=Speed]", value);
  /** Lets the newest run go on to a time, always with 20 s left until its end, and then so slowly that it outlasts what is done next. */
  const reach = async (time) => {
    const newest = async () => (await (await page.request.get(`${origin}/api/runs`)).json())[0];
    const pace = (id, speed) => page.request.post(`${origin}/api/runs/${id}/control`, { data: { speed } });
    for (let run = await newest(); ; run = await newest()) {
      const isThere = run.time_s >= time;
      await pace(run.id, isThere ? 0.02 : (run.duration_s - run.time_s) / 20);
      if (isThere) break;
      await sleep(200);
    }
    await page.waitForFunction((least) => Number(document.querySelector("progress")?.value) >= least, time);
  };
  try {
    // A request that is not answered yet.
    await page.route("**/messages", () => undefined);
    await page.goto(server.url);
    await page.waitForSelector("h2:has-text('Loading')");
    await look("loading");
    await page.unroute("**/messages");
    await page.goto(origin);
    await state("done");
    await look("example");
    await page.goto(`${origin}/#/results`);
    await page.waitForSelector("h1:has-text('No results yet')");
    await look("empty");
    await page.goto(`${origin}/#/`);
    await field("path.rate").fill("fast");
    await page.waitForSelector("[data-key='path.rate'] .error:has-text('expected')");
    await look("refused");
    await field("path.rate").fill("100 Mbit/s");
    await page.waitForFunction(() => !document.querySelector("[aria-invalid]"));
    await speed("1");
    await page.click("#start");
    await state("running");
    await reach(22);
    await page.click("#pause");
    await state("paused");
    await page.selectOption("[aria-label='Algorithm of the new flow']", "scalable");
    await page.click("#add-now");
    await page.waitForSelector("[data-chart=cwnd] .legend >> text=scalable");
    await page.click("#pause");
    await state("running");
    await reach(38);
    await look("running");
    await page.click("#pause");
    await state("paused");
    await page.click("text=change a link");
    await look("paused");
    await page.click("#cancel");
    await state("cancelled");
    await look("cancelled");
    await speed("0");
    await page.click("#start");
    await page.waitForSelector(".banner:has-text('Finished')");
    await look("finished");
    // A file where the results folder should be.
    renameSync(results, `${results}-kept`);
    writeFileSync(results, "");
    await page.click("#start");
    await state("failed");
    await look("failed");
    rmSync(results);
    renameSync(`${results}-kept`, results);
    await page.evaluate(() => document.activeElement.blur());
    await page.keyboard.press("?");
    await page.waitForSelector("dialog[open]");
    await look("keys");
    await page.keyboard.press("Escape");
    elephan("compare", "--rate", "10Mbit/s", "--rtt", "40ms", "--cc", "reno,htcp", "--duration", "30s", "--repeat", "3", "--out", `${results}/compare-10-Mbit-s`);
    await page.click("nav >> text=Results");
    await page.locator("[aria-label^='Select compare']").check();
    await page.locator("[aria-label='Select two-flows-1']").check();
    await look("results");
    await page.click("#compare");
    await page.waitForSelector(".content h1");
    await look("beside");
    await page.goto(`${origin}/nowhere`);
    await page.waitForSelector("h1:has-text('No page')");
    await look("unknown");
    await page.goto(`${origin}/#/`);
    await speed("1");
    await page.click("#start");
    await state("running");
    await reach(8);
    await server.stop();
    await page.waitForSelector(".banner:has-text('does not respond')");
    await look("gone");
  } finally {
    await server.stop();
  }
}

/** The states of which the documentation has pictures. */
export const SHOWN = ["example", "running", "paused", "finished", "refused", "results"];
