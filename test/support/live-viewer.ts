import type { Browser, BrowserContextOptions, Page } from "playwright";
import { expect } from "vitest";

const pollOptions = { timeout: 30_000 };

/** Viewer with an open view link. Errors of the page are recorded. */
export interface LiveViewer {
  readonly page: Page;
  readonly faults: readonly string[];
}

/** Opens a view link as a viewer. `prepare` receives the page before it loads. */
export async function openLink(
  browser: Browser,
  url: string,
  options: BrowserContextOptions = {},
  prepare: (page: Page) => unknown = () => undefined,
): Promise<LiveViewer> {
  const context = await browser.newContext(options);
  const page = await context.newPage();
  const faults: string[] = [];
  page.on("console", (message) => message.type() === "error" && faults.push(message.text()));
  page.on("pageerror", (error) => faults.push(error.message));
  await prepare(page);
  await page.goto(url);
  return { page, faults };
}

type Shown = "status" | "notice" | "title" | "viewers" | "control-status";

/** Resolves when a part of the page shows a text. */
export async function says(page: Page, what: Shown, text: string | RegExp): Promise<void> {
  const said = expect.poll(() => page.locator(`#${what}`).textContent(), pollOptions);
  await (typeof text === "string" ? said.toContain(text) : said.toMatch(text));
}

/** Takes control with one click. */
export async function takeControl(page: Page): Promise<void> {
  await page.getByRole("button", { name: "Take control" }).click();
  await says(page, "control-status", "You have control");
}

export async function handBack(page: Page): Promise<void> {
  await page.getByRole("button", { name: "Hand back" }).click();
  await page.getByRole("button", { name: "Take control" }).waitFor();
}

/** Converts a point of the session's page to the window. The picture keeps its aspect ratio within the canvas. */
export function windowPoint(page: Page, at: { x: number; y: number }): Promise<{ x: number; y: number }> {
  return page.evaluate(({ x, y }) => {
    const canvas = document.querySelector("canvas");
    if (!canvas) throw new Error("there is no picture");
    const box = canvas.getBoundingClientRect();
    const scale = Math.min(box.width / canvas.width, box.height / canvas.height);
    const left = box.left + (box.width - canvas.width * scale) / 2;
    const top = box.top + (box.height - canvas.height * scale) / 2;
    return { x: left + x * scale, y: top + y * scale };
  }, at);
}
