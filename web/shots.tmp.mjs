import { launch } from "./tests/server.mjs";
const [,, out, width, scheme, ...urls] = process.argv;
const b = await launch();
for (const u of urls) {
  const [name, url] = u.split("=");
  const p = await b.newPage({ viewport: { width: +width, height: 900 }, colorScheme: scheme === "print" ? "light" : scheme });
  p.on("pageerror", e => console.log(name, "ERROR", e.message)); p.on("console", m => m.type()==="error" && console.log(name, m.text()));
  await p.goto(url); await p.waitForTimeout(700);
  if (scheme === "print") await p.pdf({ path: `${out}/${name}.pdf`, format: "A4" });
  else await p.screenshot({ path: `${out}/${name}-${width}-${scheme}.png`, fullPage: true });
  console.log(name, await p.evaluate(() => [document.documentElement.scrollWidth, innerWidth, document.documentElement.scrollHeight].join(" ")));
  await p.close();
}
await b.close();
