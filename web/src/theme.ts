// Light and dark themes, and colours that colour-blind readers can distinguish (Okabe and Ito). Lines after the eighth are dashed.

const LIGHT = ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000", "#8a7a00"];
const DARK = ["#4aa8e0", "#ff7f2a", "#2fc79a", "#e39bc3", "#f0b429", "#8fd0f5", "#e8e8e8", "#f0e442"];
const DASHES: number[][] = [[], [6, 3], [2, 2], [8, 3, 2, 3]];

const drawn = new Map<Element, () => void>();

/** Whether the page is dark now. */
export function isDark(): boolean {
  const chosen = document.documentElement.dataset.theme;
  return chosen ? chosen === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
}

/** The colour of the n-th line. */
export function colour(n: number): string {
  const palette = isDark() ? DARK : LIGHT;
  return palette[n % palette.length]!;
}

/** The dashes of the n-th line. */
export function dash(n: number): number[] {
  return DASHES[Math.floor(n / LIGHT.length) % DASHES.length]!;
}

/** A colour of the style sheet. */
export function css(name: string): string {
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}

/** Calls `draw` when the size of an element or the colours change, and when the element leaves the document, after which it is not kept. */
export function onLook(element: Element, draw: (isRecoloured: boolean) => void): void {
  new ResizeObserver(() => {
    if (element.isConnected) drawn.set(element, () => draw(true));
    else drawn.delete(element);
    draw(false);
  }).observe(element);
}

function changed(): void {
  for (const draw of drawn.values()) draw();
}

/** Selects light or dark; null leaves the choice to the system. */
export function setTheme(theme: "light" | "dark" | null): void {
  if (theme) document.documentElement.dataset.theme = theme;
  else delete document.documentElement.dataset.theme;
  changed();
}

matchMedia("(prefers-color-scheme: dark)").addEventListener("change", changed);

// Paper is white, and folded sections cannot be opened on it.
let before: string | undefined;
let closed: HTMLDetailsElement[] = [];
addEventListener("beforeprint", () => {
  before = document.documentElement.dataset.theme;
  setTheme("light");
  closed = [...document.querySelectorAll<HTMLDetailsElement>("details:not([open])")];
  for (const one of closed) one.open = true;
});
addEventListener("afterprint", () => {
  setTheme((before as "light" | "dark" | undefined) ?? null);
  for (const one of closed) one.open = false;
});
