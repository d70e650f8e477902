// The web app and a report in a real browser. Run by python/tests/test_browser.py, or with `npm test`.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, afterEach, before, test } from "node:test";
import { launch, serve } from "./server.mjs";

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

async function open(options = {}) {
  context = await browser.newContext({ viewport: { width: 1280, height: 900 }, ...options });
  page = await context.newPage();
  page.setDefaultTimeout(10_000);
  complaints = [];
  page.on("pageerror", (error) => complaints.push(error.message));
  await page.goto(server.url);
  await page.waitForSelector("#start");
  return page;
}

const field = (key) => page.locator(`[data-key="${key}"] > input[type=text]`);
const samples = (id = "cwnd") => page.locator(`[data-chart=${id}]`).getAttribute("data-samples").then(Number);
const state = (name) => page.waitForSelector(`.state[data-state=${name}]`);
const overflow = () => page.evaluate(() => document.documentElement.scrollWidth - innerWidth);

async function quickly(duration = "20 s", speed = "10") {
  await field("path.rate").fill("10 Mbit/s");
  await field("duration").fill(duration);
  await page.selectOption("[aria-label=Speed]", speed);
}

async function saved(click) {
  const [file] = await Promise.all([page.waitForEvent("download"), click()]);
  return { name: file.suggestedFilename(), text: readFileSync(await file.path(), "utf8") };
}

test("a run is started, drawn while it goes on, changed, exported, finished and opened again", async () => {
  await open();
  await quickly("60 s", "5");
  await page.click("#start");
  await state("running");
  await page.waitForFunction(() => Number(document.querySelector("[data-chart=cwnd]")?.dataset.samples) > 5);
  const early = await samples();
  assert.ok(early < 590, `drawn at ${early} samples`);
  await page.selectOption("[aria-label='Algorithm of the new flow']", "scalable");
  await page.click("#add-now");
  await page.waitForSelector("[data-chart=cwnd] .legend >> text=scalable");
  assert.ok((await samples()) > early);
  await page.click("text=change a link");
  const change = page.locator(".link-change");
  await change.locator("[data-key=rate] input[type=text]").fill("slow");
  await page.click("#change-now");
  await change.locator("[data-key=rate] .error:has-text('expected a rate')").waitFor();
  await change.locator("[data-key=rate] input[type=text]").fill("4 Mbit/s");
  await page.click("#change-now");
  await change.locator("[aria-invalid]").waitFor({ state: "detached" });
  await page.selectOption("[aria-label=Speed]", "0");
  await state("done");
  assert.equal(await samples(), 601);
  const last = (await saved(() => page.click("[data-chart=cwnd] figcaption button"))).text.trim().split("\r\n").at(-1);
  assert.ok(last.split(",").every((value) => Number(value) > 0), last);
  const file = await saved(() => page.click("#export"));
  assert.equal(file.name, "two-flows.toml");
  assert.match(file.text, /cc = "scalable"\nstart = "[0-9.]+ s"/);
  assert.match(file.text, /rate = "10 Mbit\/s"/);
  assert.match(file.text, /\[\[event\]\]\nat = "[0-9.]+ s"\nlink = "bottleneck"\nrate = "4 Mbit\/s"/);
  const report = await saved(() => page.click("text=Report"));
  assert.match(report.text, /^<!doctype html>/);
  await page.click("nav >> text=Results");
  await page.click("text=two-flows-1");
  await page.waitForSelector("h1:has-text('two-flows')");
  assert.equal(await samples(), 601);
});

test("a slider changes the scenario by keys, and a mistake is shown at its field", async () => {
  await open();
  const slider = page.locator("[aria-label='rate, slider']");
  const before = await field("path.rate").inputValue();
  await slider.focus();
  await page.keyboard.press("ArrowRight");
  const now = await field("path.rate").inputValue();
  assert.notEqual(now, before);
  assert.match(now, /^[0-9.]+ Mbit\/s$/);
  await field("path.rate").fill("fast");
  await page.waitForSelector("[data-key='path.rate'] .error:has-text('expected a rate such as')");
  assert.equal(await field("path.rate").getAttribute("aria-invalid"), "true");
  await page.click("#start");
  assert.equal(await page.locator("[data-chart]").count(), 0);
  await field("path.rate").fill("20 Mbit/s");
  await page.waitForFunction(() => !document.querySelector("[aria-invalid]"));
});

test("a run is paused, goes on and is cancelled, by keys alone", async () => {
  await open();
  await quickly("60 s", "5");
  await page.focus("#start");
  await page.keyboard.press("Enter");
  await page.waitForSelector("#pause");
  await page.waitForFunction(() => Number(document.querySelector("[data-chart=cwnd]")?.dataset.samples) > 2);
  // From Start, the tab key moves to Pause, then to Cancel.
  await page.focus("#start");
  await page.keyboard.press("Tab");
  await page.keyboard.press("Space");
  await state("paused");
  const [one, two] = [await samples(), await page.waitForTimeout(300).then(() => samples())];
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
  await quickly("60 s", "5");
  await page.click("#start");
  await page.waitForFunction(() => Number(document.querySelector("[data-chart=cwnd]")?.dataset.samples) > 2);
  await context.close();
  await open();
  await page.click(".chip >> text=two-flows");
  await page.waitForFunction(() => Number(document.querySelector("[data-chart=cwnd]")?.dataset.samples) > 10);
  await page.click("#cancel");
  await state("cancelled");
});

test("a server that dies during a run is missed, found again, and runs it again", async () => {
  await open();
  await quickly("60 s", "5");
  await page.click("#start");
  await page.waitForFunction(() => Number(document.querySelector("[data-chart=cwnd]")?.dataset.samples) > 5);
  await server.stop();
  await page.waitForSelector(".banner:has-text('does not respond')");
  const kept = await samples();
  assert.ok(kept > 5);
  server = await serve(folder, server.port);
  // The server has a new token. The page shows this, and waits until its URL has been opened once.
  await page.waitForSelector(".banner:has-text('Open the address that it printed')", { timeout: 20_000 });
  const other = await context.newPage();
  await other.goto(server.url);
  await other.waitForSelector("#start");
  assert.ok(!other.url().includes("token"), other.url());
  await other.close();
  await page.waitForSelector(".banner:has-text('was restarted')", { timeout: 20_000 });
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
  const choices = await page.locator("[data-key='flow.0.cc'] select option").allTextContents();
  for (const name of ["reno", "hstcp", "scalable", "htcp", "bic", "fast", "ltcp"]) assert.ok(choices.includes(name), name);
  await page.selectOption("[data-key='flow.0.cc'] select", "scalable");
  await page.click("text=parameters of scalable");
  await field("flow.0.cc.a").fill("0.02");
  await page.waitForFunction(() => JSON.parse(localStorage.getItem("elephan-scenario")).flow[0].cc?.a === 0.02);
  await field("duration").fill("18 s");
  await page.selectOption("[aria-label=Speed]", "0");
  await page.click("#start");
  await state("done");
  assert.equal(await page.locator("[data-chart=queue] .legend li").count(), 3);
});

for (const width of [1280, 400]) {
  test(`nothing is cut off at ${width} pixels, light or dark`, async () => {
    await open({ viewport: { width, height: 800 }, colorScheme: width === 400 ? "dark" : "light" });
    await quickly("20 s", "0");
    await page.click("#start");
    await state("done");
    assert.ok((await overflow()) <= 0);
    await page.click("nav >> text=Results");
    await page.waitForSelector("table");
    assert.ok((await overflow()) <= 0);
    await page.locator("tbody a").first().click();
    await page.waitForSelector("h1");
    assert.ok((await overflow()) <= 0);
  });
}

test("a report opens from a file: linked zoom, data as CSV, no network", async () => {
  await open();
  const [run, report] = [join(folder, "run"), join(folder, "report.html")];
  const scenario = join(folder, "scenario.toml");
  const toml = 'duration = "30 s"\n[path]\nrate = "10 Mbit/s"\nrtt = "40 ms"\n[[flow]]\ncc = "htcp"\n';
  execFileSync("sh", ["-c", `printf '%s' "$0" > "$1"`, toml, scenario]);
  const elephan = process.env.ELEPHAN ?? "elephan";
  execFileSync(elephan, ["run", scenario, "--out", run]);
  execFileSync(elephan, ["report", run, "--out", report]);
  await page.goto("about:blank");
  const asked = [];
  page.on("request", (request) => asked.push(request.url()));
  await page.goto(`file://${report}`);
  await page.waitForSelector("[data-chart=queue] canvas");
  assert.deepEqual(asked, [`file://${report}`]);
  const file = await saved(() => page.click("[data-chart=cwnd] figcaption button"));
  const rows = file.text.trim().split("\r\n");
  assert.equal(rows.length, 302);
  assert.match(rows[0], /^time_s,htcp: Congestion window \(segments\)/);
  // Dragging in one chart zooms all of them, so their pictures change.
  const picture = (id) => page.locator(`[data-chart=${id}] canvas`).evaluate((canvas) => canvas.toDataURL());
  const [cwnd, queue] = [await picture("cwnd"), await picture("queue")];
  const box = await page.locator("[data-chart=cwnd] .u-over").boundingBox();
  await page.mouse.move(box.x + 60, box.y + 50);
  await page.mouse.down();
  await page.mouse.move(box.x + 160, box.y + 60, { steps: 4 });
  await page.mouse.up();
  await page.waitForTimeout(200);
  assert.notEqual(await picture("cwnd"), cwnd);
  const zoomed = await picture("queue");
  assert.notEqual(zoomed, queue);
  await page.click("text=light / dark");
  await page.waitForTimeout(200);
  assert.notEqual(await picture("queue"), zoomed);
});
