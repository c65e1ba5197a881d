// Playwright as a customer runs it: performs all actions of a client, then waits to be killed.
import { chromium } from "playwright";
import type { Deeds, Orders } from "../../support/outside-client.ts";

const orders: Orders = JSON.parse(process.argv[2] ?? "");
const browser = await chromium.connectOverCDP(orders.url);
const [context] = browser.contexts();
const page = context?.pages().find((each) => each.url() === orders.page);
if (!context || !page) throw new Error("the session does not show the page");

await page.setViewportSize({ width: 500, height: 400 });
await page.getByLabel("Name").fill("Grace");
await page.getByRole("button", { name: "Greet" }).click();
const form = await page.title();

const [opened] = await Promise.all([context.waitForEvent("page"), page.click("#popup")]);
await opened.waitForLoadState();
const popup = await opened.title();
await opened.close();

const [download] = await Promise.all([page.waitForEvent("download"), page.click("#download")]);

await page.setInputFiles("#file", orders.file, { timeout: 120_000 });
await page.waitForFunction(() => document.title.startsWith("file "), undefined, { timeout: 120_000 });
const upload = await page.title();

let asked = "";
page.once("dialog", (dialog) => {
  asked = dialog.message();
  void dialog.accept();
});
await page.click("#ask");
const dialog = [asked, await page.title()] as const;

const screenshot = (await page.screenshot()).toString("latin1", 1, 4);
const deeds: Deeds = { form, popup, download: download.suggestedFilename(), upload, dialog, screenshot };

// Leftovers: a page in its own context, paused requests to this page's site, and an unanswered dialog.
const foreign = await (await browser.newContext()).newPage();
await foreign.goto(orders.page);
await context.route("**/*", () => undefined);
const shown = new Promise((resolve) => page.on("dialog", resolve));
page.click("#ask").catch(() => undefined);
await shown;
console.log(JSON.stringify(deeds));
setInterval(() => undefined, 60_000);
