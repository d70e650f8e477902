// The web app and a report in a real browser. Run by python/tests/studies/test_browser.py, or with `npm test`.
import assert from "node:assert/strict";
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, afterEach, before, test } from "node:test";
import { violations } from "./axe.mjs";
import { elephan, launch, PATIENCE_MS, serve } from "./server.mjs";
import { everyState } from "./states.mjs";

const folder = mkdtempSync(join(tmpdir(), "elephan-"));
let browser, server, context, page, complaints;

before(async () => {
  [browser, server] = await Promise.all([launch(), serve(folder)]);
});
after(async () => {
  await browser.close();
  await server.stop();
  rmSync(folder, { recursive: true });
});
afterEach(async () => {
  await context?.close();
  assert.deepEqual(complaints, []);
});

async function open(options = {}, url = server.url) {
  context = await browser.newContext({ viewport: { width: 1280, height: 900 }, ...options });
  context.setDefaultTimeout(PATIENCE_MS);
  page = await context.newPage();
  complaints = [];
  page.on("pageerror", (error) => complaints.push(error.message));
  await page.goto(url);
  await page.waitForSelector("#start");
  return page;
}

const field = (key) => page.locator(`[data-key="${key}"] > input[type=text]`);
/** The texts of all such elements, by one evaluation, because the page may replace them between two. */
const texts = (selector) => page.evaluate((all) => [...document.querySelectorAll(all)].map((one) => one.textContent), selector);
const samples = (id = "cwnd") => page.locator(`[data-chart=${id}]`).getAttribute("data-samples").then(Number);
const state = (name) => page.waitForSelector(`.state[data-state=${name}]`);
const figures = () => page.evaluate(() => [...document.querySelectorAll(".tiles > div")].map((tile) => [...tile.children].map((part) => part.textContent).join(" ")));
const overflow = () => page.evaluate(() => document.documentElement.scrollWidth - innerWidth);

/** Sets a run that takes a minute of real time: a slow machine, too, changes it before it ends. */
async function slowly() {
  await field("path.rate").fill("10 Mbit/s");
  await field("duration").fill("60 s");
  await page.selectOption("[aria-label=Speed]", "1");
}

async function saved(click) {
  const [file] = await Promise.all([page.waitForEvent("download"), click()]);
  return { name: file.suggestedFilename(), text: readFileSync(await file.path(), "utf8") };
}

test("a run is started, drawn while it goes on, changed, exported, finished and opened again", async () => {
  await open();
  await slowly();
  await page.locator("[data-key='flow.0.count'] input").evaluate((input) => { input.value = "2"; input.dispatchEvent(new Event("input")); });
  await page.click("#start");
  await state("running");
  await page.waitForFunction(() => Number(document.querySelector("[data-chart=cwnd]")?.dataset.samples) > 5);
  const early = await samples();
  // A table of the file can stand for several flows. The list is there once the page has heard of the flows, which may be after their samples.
  await page.waitForFunction(() => document.querySelectorAll("[aria-label='Flow to stop'] option").length > 0);
  assert.deepEqual(await texts("[aria-label='Flow to stop'] option"), ["flows 1 to 2 (htcp)", "flow 3 (htcp)"]);
  assert.ok(early < 590, `drawn at ${early} samples`);
  await page.selectOption("[aria-label='Algorithm of the new flow']", "scalable");
  await page.click("#add-now");
  await page.waitForSelector("[data-chart=cwnd] .legend >> text=scalable");
  await page.waitForFunction((then) => Number(document.querySelector("[data-chart=cwnd]").dataset.samples) > then, early);
  await page.click("text=change a link");
  const change = page.locator(".link-change");
  assert.equal(await change.locator("[data-key=rate] input[type=text]").inputValue(), "10 Mbit/s");
  await change.locator("[data-key=rate] input[type=text]").fill("slow");
  await page.click("#change-now");
  await change.locator("[data-key=rate] .error:has-text('expected a rate')").waitFor();
  await change.locator("[data-key=rate] input[type=text]").fill("4 Mbit/s");
  await page.click("#change-now");
  // The field has the new value, because it holds from the next sample on.
  await page.waitForFunction(() => document.querySelector(".link-change [data-key=rate] input")?.getAttribute("value") === "4 Mbit/s");
  // So has the picture of the network.
  await page.waitForFunction(() => [...document.querySelectorAll(".topology text")].some((one) => one.textContent === "4 Mbit/s"));
  assert.match(await page.locator(".topology svg").getAttribute("aria-label"), /link bottleneck, 4 Mbit\/s/);
  await page.selectOption("[aria-label=Speed]", "0");
  assert.match(await figures().then((all) => all[0]), /^goodput [0-9.]+ Mbit\/s$/);
  await state("done");
  assert.equal(await samples(), 601);
  const shown = await figures();
  const last = (await saved(() => page.click("[data-chart=cwnd] figcaption button"))).text.trim().split("\r\n").at(-1);
  assert.ok(last.split(",").every((value) => Number(value) > 0), last);
  const file = await saved(() => page.click("#export"));
  assert.equal(file.name, "two-flows.toml");
  assert.match(file.text, /cc = "scalable"\nstart = "[0-9.]+ s"/);
  assert.match(file.text, /rate = "10 Mbit\/s"/);
  assert.match(file.text, /\[\[event\]\]\nat = "[0-9.]+ s"\nlink = "bottleneck"\nrate = "4 Mbit\/s"/);
  const report = await saved(() => page.click("a:text-is('Report')"));
  assert.match(report.text, /^<!doctype html>/);
  await page.click("nav >> text=Results");
  await page.click(".results tbody a:text-is('two-flows-1')");
  await page.waitForSelector(".content h1:has-text('two-flows')");
  assert.deepEqual(await figures(), shown);
  assert.equal(await samples(), 601);
});

test("a slider changes the scenario by keys, and a mistake is shown at its field", async () => {
  await open();
  const slider = page.locator("[aria-label='rate, slider']").first();
  const before = await field("path.rate").inputValue();
  await slider.focus();
  await page.keyboard.press("ArrowRight");
  const now = await field("path.rate").inputValue();
  assert.notEqual(now, before);
  assert.match(now, /^[0-9.]+ Mbit\/s$/);
  await field("path.rate").fill("fast");
  await page.waitForSelector("[data-key='path.rate'] .error:has-text('expected a rate such as')");
  assert.equal(await field("path.rate").getAttribute("aria-invalid"), "true");
  const refused = page.waitForResponse((one) => one.url().endsWith("/api/runs") && one.request().method() === "POST");
  await page.click("#start");
  assert.equal((await refused).status(), 422);
  assert.equal(await page.evaluate(() => location.hash), "");
  await field("path.rate").fill("20 Mbit/s");
  await page.waitForFunction(() => !document.querySelector("[aria-invalid]"));
});

test("a run is paused, goes on and is cancelled, by keys alone", async () => {
  await open();
  await slowly();
  await page.focus("#start");
  await page.keyboard.press("Enter");
  await page.waitForSelector("#pause");
  await page.waitForFunction(() => Number(document.querySelector("[data-chart=cwnd]")?.dataset.samples) > 2);
  // From Start, the tab key moves to Pause, then to Cancel.
  await page.focus("#start");
  await page.keyboard.press("Tab");
  await page.keyboard.press("Space");
  await state("paused");
  const [one, two] = [await samples(), await page.waitForTimeout(1000).then(() => samples())];
  assert.ok(two - one <= 2, `${one} and ${two} samples while paused`);
  assert.equal(await page.evaluate(() => document.activeElement.id), "pause");
  await page.keyboard.press("Space");
  await state("running");
  await page.keyboard.press("Tab");
  await page.keyboard.press("Enter");
  await state("cancelled");
  const chart = page.locator("[data-chart=cwnd] .plot-area");
  await chart.focus();
  await page.keyboard.press("+");
  await page.keyboard.press("ArrowRight");
  await page.keyboard.press("0");
});

test("a run goes on when its page is closed", async () => {
  await open();
  await slowly();
  await page.click("#start");
  await state("running");
  await page.waitForFunction(() => Number(document.querySelector("[data-chart=cwnd]")?.dataset.samples) > 2);
  await context.close();
  await open();
  // The page shows the newest run of the server.
  await state("running");
  await page.waitForFunction(() => Number(document.querySelector("[data-chart=cwnd]")?.dataset.samples) > 10);
  await page.click("#cancel");
  await state("cancelled");
});

test("a server that dies during a run is missed, found again, and runs it again", async () => {
  await open();
  await slowly();
  await page.click("#start");
  await state("running");
  await page.waitForFunction(() => Number(document.querySelector("[data-chart=cwnd]")?.dataset.samples) > 5);
  await server.stop();
  await page.waitForSelector(".banner:has-text('does not respond')");
  const kept = await samples();
  assert.ok(kept > 5);
  server = await serve(folder, server.port);
  // The server has a new token. The page shows this, and waits until its URL has been opened once.
  await page.waitForSelector(".banner:has-text('Open the address that it printed')");
  const other = await context.newPage();
  await other.goto(server.url);
  await other.waitForSelector("#start");
  assert.ok(!other.url().includes("token"), other.url());
  await other.close();
  await page.waitForSelector(".banner:has-text('was restarted')");
  assert.ok((await samples()) >= kept);
  await page.click("text=repeat the run");
  await state("running");
  await page.click("#cancel");
  await state("cancelled");
});

test("several links, and every algorithm, have controls", async () => {
  await open();
  await page.selectOption("#topology", { label: "Parking lot: three bottlenecks" });
  await page.waitForSelector("legend:has-text('link third')");
  const groups = () => page.locator("[data-key='flow.0.cc'] select").evaluate((select) => [...select.children].map(({ label, children }) => [label, [...children].map((one) => `${one.value} is ${one.text}`)]));
  const own = new Map(await groups());
  assert.equal(own.size, 3);
  assert.ok(own.get("Elephan's own").includes("htcp is htcp: H-TCP"));
  assert.ok([...own].some(([group, names]) => group.startsWith("Linux's own") && names.includes("linux:bbr is linux:bbr: BBR, version 1")));
  await page.selectOption("[data-key='flow.0.cc'] select", "scalable");
  await page.waitForSelector("legend:text-is('flow 1: scalable')");
  await page.click("text=parameters of scalable");
  await field("flow.0.cc.a").fill("0.02");
  await page.waitForFunction(() => JSON.parse(localStorage.getItem("elephan-scenario")).flow[0].cc?.a === 0.02);
  await field("duration").fill("18 s");
  await page.selectOption("[aria-label=Speed]", "0");
  await page.click("#start");
  await state("done");
  assert.equal(await page.locator("[data-chart=queue] .legend li").count(), 3);
});

test("a flow against the direction of a link is drawn on it", async () => {
  await open();
  const link = { name: "only", from: "a", to: "b", rate: "10 Mbit/s", delay: "10 ms" };
  const flow = [{ cc: "reno", from: "a", to: "b" }, { cc: "htcp", from: "b", to: "a" }];
  await page.evaluate((document) => localStorage.setItem("elephan-scenario", JSON.stringify(document)), { name: "both-ways", duration: "2 s", link: [link], flow });
  await page.reload();
  await page.selectOption("[aria-label=Speed]", "0");
  await page.click("#start");
  await page.waitForSelector(".runbar :text('2.0 s of 2 s')");
  await state("done");
  assert.deepEqual(await texts(".topology polyline title"), ["flow 1: reno", "flow 2: htcp"]);
});

test("a first visit shows a finished run without writing it, and keys act outside of fields", async () => {
  const empty = mkdtempSync(join(tmpdir(), "elephan-"));
  const other = await serve(empty);
  try {
    await open({}, other.url);
    await page.waitForSelector(".banner:has-text('An example')");
    assert.equal(await samples(), 601);
    assert.deepEqual(readdirSync(empty), []);
    await field("path.rate").press("r");
    await field("path.rate").blur();
    assert.equal(new URL(page.url()).hash, "");
    await page.keyboard.press("r");
    await page.waitForSelector("h1:has-text('No results yet')");
    for (const [address, text] of [["#/elsewhere", "No page at this address"], ["#/run/none", "No run at this address"], ["#/results/none", "cannot be shown"]]) {
      await page.goto(`http://127.0.0.1:${other.port}/${address}`);
      await page.waitForSelector(`.empty:has-text("${text}")`);
    }
  } finally {
    await other.stop();
    rmSync(empty, { recursive: true });
  }
});

test("another name for an algorithm is in its list where a scenario has it", async () => {
  await open();
  await page.evaluate((document) => localStorage.setItem("elephan-scenario", JSON.stringify(document)), { duration: "2 s", path: { rate: "10 Mbit/s", rtt: "40 ms" }, flow: [{ cc: "hybla" }, { cc: "reno" }] });
  await page.reload();
  const first = page.locator("[data-key='flow.0.cc'] select");
  assert.equal(await first.inputValue(), "hybla");
  assert.equal(await page.locator("[data-key='flow.1.cc'] select option[value=hybla]").count(), 0);
});

test("what is shown no longer is not drawn again", async () => {
  await open();
  const run = () => page.request.post(`http://127.0.0.1:${server.port}/api/runs`, { data: { document: { name: "short", duration: "2 s", path: { rate: "10 Mbit/s", rtt: "40 ms" }, flow: [{ cc: "reno" }] }, speed: 0 } });
  for (const { id } of [await (await run()).json(), await (await run()).json()]) {
    await page.goto(`http://127.0.0.1:${server.port}/#/run/${id}`);
    await page.waitForSelector(".runbar :text('2.0 s of 2 s')");
    await page.waitForSelector("[data-chart=cwnd] canvas");
  }
  await page.evaluate(() => new Promise((drawn) => requestAnimationFrame(() => requestAnimationFrame(drawn))));
  const made = await page.evaluate(() => {
    const [make, tags] = [document.createElement.bind(document), []];
    document.createElement = (tag, ...more) => (tags.push(tag), make(tag, ...more));
    document.querySelector("[aria-label='light / dark']").click();
    return tags.filter((tag) => tag === "canvas").length;
  });
  assert.equal(made, await page.locator("[data-chart] canvas").count());
  // What is drawn again on its return has the present colours.
  await page.goto(`http://127.0.0.1:${server.port}/#/results`);
  await page.waitForSelector(".results tbody tr");
  await page.goBack();
  await page.waitForSelector("[data-chart=cwnd] canvas");
});

test("results are searched and sorted", async () => {
  await open();
  await page.click("nav >> text=Results");
  const names = () => texts(".results tbody th");
  await page.waitForSelector(".results tbody tr");
  const all = await names();
  await page.click("thead >> text=folder");
  assert.deepEqual(await names(), [...all].sort(new Intl.Collator("en", { numeric: true }).compare));
  const one = all.at(-1);
  await page.fill("#search", `${one.toUpperCase()} run`);
  assert.deepEqual(await names(), [one]);
});

test("every state of the page is accessible, in light and dark, and nothing is cut off at 390 pixels", async () => {
  const own = mkdtempSync(join(tmpdir(), "elephan-"));
  context = await browser.newContext({ viewport: { width: 1280, height: 860 } });
  page = await context.newPage();
  complaints = [];
  page.on("pageerror", (error) => complaints.push(error.message));
  const found = [];
  try {
    await everyState(page, own, async (name) => {
      found.push(...(await violations(page)).map((one) => `${name}: ${one}`));
      await page.setViewportSize({ width: 390, height: 844 });
      if ((await overflow()) > 0) found.push(`${name}: wider than 390 pixels`);
      await page.setViewportSize({ width: 1280, height: 860 });
    });
    assert.deepEqual(found, []);
  } finally {
    rmSync(own, { recursive: true });
  }
});

test("a report opens from a file: linked zoom, data as CSV, no network", async () => {
  await open();
  const [run, report] = [join(folder, "run"), join(folder, "report.html")];
  const scenario = join(folder, "scenario.toml");
  writeFileSync(scenario, 'duration = "30 s"\n[path]\nrate = "10 Mbit/s"\nrtt = "40 ms"\n[[flow]]\ncc = "htcp"\n');
  elephan("run", scenario, "--out", run);
  elephan("report", run, "--out", report);
  await page.goto("about:blank");
  const asked = [];
  page.on("request", (request) => asked.push(request.url()));
  await page.goto(`file://${report}`);
  await page.waitForSelector("[data-chart=queue] canvas");
  assert.deepEqual(asked, [`file://${report}`]);
  const file = await saved(() => page.click("[data-chart=cwnd] figcaption button"));
  assert.deepEqual(await violations(page), []);
  const rows = file.text.trim().split("\r\n");
  assert.equal(rows.length, 302);
  assert.match(rows[0], /^time_s,flow 1: htcp: Congestion window \(segments\)/);
  // Dragging in one chart zooms all of them, so their pictures change.
  const picture = (id) => page.evaluate((chart) => document.querySelector(`[data-chart=${chart}] canvas`).toDataURL(), id);
  const redrawn = (id, before) => page.waitForFunction(([chart, old]) => document.querySelector(`[data-chart=${chart}] canvas`).toDataURL() !== old, [id, before]);
  // The check of accessibility ended in light, which the charts follow in the next frame.
  await page.evaluate(() => new Promise((drawn) => requestAnimationFrame(() => requestAnimationFrame(drawn))));
  const [cwnd, queue] = [await picture("cwnd"), await picture("queue")];
  const box = await page.locator("[data-chart=cwnd] .u-over").boundingBox();
  await page.mouse.move(box.x + 60, box.y + 50);
  await page.mouse.down();
  await page.mouse.move(box.x + 160, box.y + 60, { steps: 4 });
  await page.mouse.up();
  await redrawn("cwnd", cwnd);
  await redrawn("queue", queue);
  const zoomed = await picture("queue");
  await page.click("text=light / dark");
  await redrawn("queue", zoomed);
});

test("a sweep has the labels of `elephan plot`, as lines, boxes, a distribution and a map", async () => {
  await open();
  const scenario = join(folder, "sweep.toml");
  writeFileSync(scenario, 'duration = "3 s"\npath = { rate = "10 Mbit/s", rtt = "20 ms" }\nflow = [{ cc = "reno" }, { cc = "reno", start = { uniform = ["0 s", "1 s"] } }]\n[sweep]\n"path.rtt" = ["10 ms", "20 ms"]\n"flow.cc" = ["reno", "htcp"]\n"path.buffer" = ["10 packets", "50 packets"]\nrepeat = 2\n');
  elephan("sweep", scenario, "--out", join(folder, "swept"));
  await page.evaluate(() => (location.hash = "#/results/swept"));
  await page.waitForSelector(".explorer svg");
  // A figure is drawn when its place has a width.
  const shows = (where, names) => page.waitForFunction(([of, all]) => all.every((name) => [...document.querySelectorAll(`${of} svg > text`)].some((one) => one.textContent === name)), [where, names]);
  const expected = { lines: ["10", "20"], boxes: ["10", "20"], cdf: ["share of runs"], heat: ["10", "20", "reno", "htcp"] };
  for (const [kind, names] of Object.entries(expected)) {
    await page.locator(".explorer select").nth(3).selectOption(kind);
    const [command = ""] = await texts(".explorer code");
    assert.equal(command === "", kind === "boxes");
    const words = command.replace("RESULTS", join(folder, "swept")).match(/"[^"]*"|[^ ]+/g)?.map((word) => word.replaceAll('"', "")) ?? [];
    if (command) elephan(...words.slice(1, -1), join(folder, `${kind}.pdf`));
    await shows(".explorer", [kind === "cdf" ? "goodput (Mbit/s)" : "round-trip time (ms)", ...names]);
  }
  // Two runs of each pair of settings: other buffers are not mixed with the first, unless all are chosen.
  const runs = async () => (await texts(".explorer .note"))[0].match(/(\d+) runs/)[1];
  assert.equal(await runs(), "8");
  await page.locator(".explorer select").last().selectOption("");
  assert.equal(await runs(), "16");
  // An axis without named values has numbers.
  await shows("[data-chart=queue_delay_mean_s-utilisation]", ["utilisation (%)", "100"]);
  assert.deepEqual(await violations(page), []);
});
