// Checks accessibility with axe-core.
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";

const source = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

/** What axe-core finds on the page: rule, element, reason; in light and in dark. */
export async function violations(page) {
  const found = [];
  await page.evaluate(source);
  for (const colorScheme of ["dark", "light"]) {
    await page.emulateMedia({ colorScheme, reducedMotion: "reduce" });
    const { violations } = await page.evaluate(() => globalThis.axe.run({ resultTypes: ["violations"] }));
    for (const { id, nodes } of violations) found.push(...nodes.map((node) => `${colorScheme}: ${id}: ${node.target.join(" ")}: ${node.failureSummary}`));
  }
  return found;
}
