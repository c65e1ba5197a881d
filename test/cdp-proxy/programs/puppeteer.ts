// Puppeteer as a customer runs it: performs all actions of a client, then waits to be killed.
import { connect, type Page } from "puppeteer-core";
import type { Deeds, Orders } from "../../support/outside-client.ts";

const orders: Orders = JSON.parse(process.argv[2] ?? "");
const browser = await connect({ browserWSEndpoint: orders.url });
const page = (await browser.pages()).find((each) => each.url() === orders.page);
if (!page) throw new Error("the session does not show the page");

await page.setViewport({ width: 500, height: 400 });
await page.type("#name", "Grace");
await page.click("#greet");
const form = await page.title();

const opening = new Promise<Page | null>((resolve) => void page.once("popup", resolve));
await page.click("#popup");
const opened = await opening;
await opened?.waitForFunction(() => document.readyState === "complete");
const popup = (await opened?.title()) ?? "";
await opened?.close();

const client = await browser.target().createCDPSession();
await client.send("Browser.setDownloadBehavior", { behavior: "allow", downloadPath: "/tmp", eventsEnabled: true });
const begun = new Promise<string>((resolve) => {
  client.once("Browser.downloadWillBegin", ({ suggestedFilename }) => resolve(suggestedFilename));
});
await page.click("#download");
const download = await begun;

const input = await page.waitForSelector("#file");
if (input?.remoteObject().subtype !== "node") throw new Error("the page has no file input");
await (await input.toElement("input")).uploadFile(orders.file);
await page.waitForFunction(() => document.title.startsWith("file "));
const upload = await page.title();

let asked = "";
page.once("dialog", (dialog) => {
  asked = dialog.message();
  void dialog.accept();
});
await page.click("#ask");
const dialog = [asked, await page.title()] as const;

const screenshot = Buffer.from(await page.screenshot()).toString("latin1", 1, 4);
const deeds: Deeds = { form, popup, download, upload, dialog, screenshot };

// Leftovers: a page in its own context, and paused requests of the page.
const foreign = await (await browser.createBrowserContext()).newPage();
await foreign.goto(orders.page);
await page.setRequestInterception(true);
console.log(JSON.stringify(deeds));
setInterval(() => undefined, 60_000);
