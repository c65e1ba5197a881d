import { mkdir } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import axe from "axe-core";
import type { Page } from "playwright";

/** Directory of the pictures, for manual review. */
const pictures = join(tmpdir(), "pilothouse-console");

/** Returns what axe finds on a page, and whether the page scrolls to the side. Takes a picture if `PICTURES` is set. */
export async function reviewPage(page: Page, name: string): Promise<string[]> {
  if (process.env.PICTURES !== undefined) {
    await mkdir(pictures, { recursive: true });
    await page.screenshot({ path: join(pictures, `${name}.png`) });
  }
  // A change of the colour scheme reaches the page with a frame, and is over when it says so.
  await page.evaluate("new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(resolve)))");
  await page.locator("html:not([data-switching])").waitFor();
  // Evaluated over CDP, because the page's policy blocks script elements.
  await page.evaluate(axe.source);
  const { violations } = await page.evaluate<axe.AxeResults>("axe.run(document, { iframes: false })");
  const found = violations.flatMap(({ id, nodes }) => nodes.map(({ html }) => `${name}: ${id} ${html}`));
  const isWide = await page.evaluate("document.documentElement.scrollWidth > innerWidth");
  return isWide ? [...found, `${name}: scrolls to the side`] : found;
}
