// Takes the pictures of the page for the documentation: `make screenshots`.
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { launch } from "./server.mjs";
import { everyState, SHOWN } from "./states.mjs";

const images = join(import.meta.dirname, "../../docs/images");
const folder = mkdtempSync(join(tmpdir(), "elephan-"));
const browser = await launch();
try {
  const page = await browser.newPage({ viewport: { width: 1280, height: 860 }, colorScheme: "light" });
  await everyState(page, folder, async (name) => {
    if (!SHOWN.includes(name)) return;
    await page.waitForTimeout(250);
    await page.screenshot({ path: join(images, `ui-${name}.png`) });
    if (name !== "finished") return;
    await page.setViewportSize({ width: 390, height: 844 });
    await page.emulateMedia({ colorScheme: "dark" });
    await page.waitForTimeout(250);
    await page.screenshot({ path: join(images, "ui-narrow.png") });
    await page.setViewportSize({ width: 1280, height: 860 });
    await page.emulateMedia({ colorScheme: "light" });
  });
} finally {
  await browser.close();
  rmSync(folder, { recursive: true });
}
