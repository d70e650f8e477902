// Takes the pictures of the page for the documentation: `make screenshots`.
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { launch, serve } from "./server.mjs";

const images = join(import.meta.dirname, "../../docs/images");
const folder = mkdtempSync(join(tmpdir(), "elephan-"));
const [browser, server] = await Promise.all([launch(), serve(folder)]);
try {
  const page = await browser.newPage({ viewport: { width: 1440, height: 1010 }, colorScheme: "light" });
  await page.goto(server.url);
  await page.waitForSelector("#start");
  await page.selectOption("[aria-label=Speed]", "5");
  await page.click("#start");
  const reached = (time) => page.waitForFunction((least) => Number(document.querySelector("progress")?.value) >= least, time, { timeout: 60_000 });
  await reached(24);
  await page.click("#pause");
  await page.waitForSelector(".state[data-state=paused]");
  await page.selectOption("[aria-label='Algorithm of the new flow']", "scalable");
  await page.click("#add-now");
  await page.waitForSelector("[data-chart=cwnd] .legend >> text=scalable");
  await page.click("#pause");
  await reached(44);
  await page.click("#pause");
  await page.waitForSelector(".state[data-state=paused]");
  await page.click("text=change a link");
  await page.locator(".link-change [data-key=rate] input[type=text]").fill("50 Mbit/s");
  await page.waitForTimeout(300);
  await page.screenshot({ path: join(images, "ui.png") });
  await page.selectOption("[aria-label=Speed]", "0");
  await page.click("#pause");
  await page.waitForSelector(".state[data-state=done]");
  await page.setViewportSize({ width: 400, height: 860 });
  await page.emulateMedia({ colorScheme: "dark" });
  await page.waitForTimeout(300);
  await page.screenshot({ path: join(images, "ui-narrow.png") });
} finally {
  await browser.close();
  await server.stop();
  rmSync(folder, { recursive: true });
}
