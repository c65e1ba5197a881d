import { mkdir } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import axe from "axe-core";
import type { Page } from "playwright";

/** Directory of the pictures, for manual review. */
const pictures = join(tmpdir(), "pilothouse-console");

/** Rules of axe whose result depends on the colour scheme. */
export const colourRules: readonly string[] = ["color-contrast", "link-in-text-block"];

/**
 * Returns what axe finds on a page, and whether the page or a card is too narrow for its content. Takes a picture if `PICTURES` is set.
 * `rules` limits axe to some rules.
 */
export async function reviewPage(page: Page, name: string, rules?: readonly string[]): Promise<string[]> {
  // The page adopts a change of the colour scheme some frames later, and so does its media query.
  const media = "matchMedia('(prefers-color-scheme: dark)').matches ? 'dark' : 'light'";
  const scheme = /-(dark|light)$/.exec(name)?.[1] ?? (await page.evaluate(media));
  await page.locator(`html[data-scheme="${scheme}"]:not([data-switching])`).waitFor();
  await page.evaluate("new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(resolve)))");
  if (process.env.PICTURES !== undefined) {
    await mkdir(pictures, { recursive: true });
    await page.screenshot({ path: join(pictures, `${name}.png`) });
  }
  // Evaluated over CDP, because the page's policy blocks script elements. The views of the console share a document.
  if (await page.evaluate("typeof axe === 'undefined'")) await page.evaluate(axe.source);
  const options = { iframes: false, ...(rules && { runOnly: rules }) };
  const { violations } = await page.evaluate<axe.AxeResults>(`axe.run(document, ${JSON.stringify(options)})`);
  const found = violations.flatMap(({ id, nodes }) =>
    nodes.map((node) => `${name}: ${id} ${node.html} ${node.failureSummary}`),
  );
  const wide: string[] = await page.evaluate(`[document.documentElement, ...document.querySelectorAll("section")]
    .filter((box) => getComputedStyle(box).overflowX === "visible" && box.scrollWidth > box.clientWidth)
    .map((box) => box.tagName + " " + box.innerText.slice(0, 40))`);
  return [...found, ...wide.map((box) => `${name}: wider than its box: ${box}`)];
}
