import { mkdir } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import axe from "axe-core";
import type { Browser, Page } from "playwright";
import { afterAll, beforeAll, expect, test } from "vitest";
import { BareClient, type CdpScene, startCdpScene } from "../support/cdp-proxy-scene.ts";
import { openLink, says, takeControl, windowPoint } from "../support/live-viewer.ts";
import { launchPlainBrowser } from "../support/plain-browser.ts";

/** Directory of the pictures, for manual review. */
const pictures = join(tmpdir(), "pilothouse-live-states");
const sizes = [
  { width: 390, height: 844 },
  { width: 1280, height: 800 },
];
const schemes = ["light", "dark"] as const;

let scene: CdpScene;
let browser: Browser;
beforeAll(async () => {
  [scene, browser] = await Promise.all([startCdpScene(), launchPlainBrowser(), mkdir(pictures, { recursive: true })]);
}, 120_000);
afterAll(async () => {
  await browser?.close();
  await scene?.[Symbol.asyncDispose]();
}, 60_000);

async function makeLink(session: string, request: object): Promise<string> {
  return (await scene.rest(`${session}/view-links`, request)).body.url;
}

/** Takes a screenshot of a state in each size and scheme, and returns axe's violations. */
async function look(page: Page, state: string): Promise<string[]> {
  const wrong: string[] = [];
  for (const size of sizes) {
    for (const colorScheme of schemes) {
      await page.setViewportSize(size);
      await page.emulateMedia({ colorScheme });
      await page.screenshot({ path: join(pictures, `${state}-${size.width}x${size.height}-${colorScheme}.png`) });
      // Evaluated over CDP, because the page's policy blocks script elements.
      await page.evaluate(axe.source);
      const { violations } = await page.evaluate<axe.AxeResults>("axe.run()");
      wrong.push(
        ...violations.flatMap(({ id, nodes }) => nodes.map(({ html }) => `${state} ${colorScheme} ${id} ${html}`)),
      );
      const isWide = await page.evaluate("document.documentElement.scrollWidth > innerWidth");
      if (isWide) wrong.push(`${state} at ${size.width} scrolls to the side`);
    }
  }
  return wrong;
}

test("the page is accessible and fits in all states, sizes and schemes", async () => {
  const session = await scene.open();
  await scene.rest(`${session}/navigate`, { url: scene.site.url("/form.html") });
  const [{ page: ada }, { page: ben }] = await Promise.all([
    openLink(browser, await makeLink(session, { control: true, name: "Ada" })),
    openLink(browser, await makeLink(session, { name: "Support desk" })),
  ]);
  const hasPicture = (page: Page) => page.locator("canvas[data-sequence]").waitFor();
  await Promise.all([hasPicture(ada), hasPicture(ben)]);
  await says(ben, "viewers", "2 watching");
  const wrong = [...(await look(ben, "watching")), ...(await look(ada, "may-take-control"))];
  const connecting = await (await browser.newContext()).newPage();
  // A service that accepts the connection but does not respond.
  await connecting.routeWebSocket("**/v1/live", () => undefined);
  await connecting.goto(await makeLink(session, {}));
  await says(connecting, "status", "Connecting");
  wrong.push(...(await look(connecting, "connecting")));
  using client = await BareClient.connect(await scene.cdpUrl(session));
  client.socket.send(JSON.stringify({ id: 99, method: "Page.crash", sessionId: await client.attach() }));
  await says(ben, "notice", "The page has crashed.");
  wrong.push(...(await look(ben, "crashed")));
  await scene.rest(`${session}/navigate`, { url: scene.site.url("/asking.html") });
  await says(ben, "title", "Asking");
  await takeControl(ada);
  wrong.push(...(await look(ada, "control-status")));
  await says(ben, "control-status", "Ada has control");
  wrong.push(...(await look(ben, "another-controls")));
  const prompt = await windowPoint(ada, { x: 250, y: 120 });
  await ada.mouse.click(prompt.x, prompt.y);
  await ada.getByRole("textbox", { name: "Name?" }).waitFor();
  wrong.push(...(await look(ada, "asked")));
  wrong.push(...(await look(ben, "another-is-asked")));
  await ada.getByRole("button", { name: "Cancel", exact: true }).click();
  // The page accepts no input until the dialog is answered.
  const answer = async () => (await scene.rest(`${session}/state`)).body.dialogs.at(-1).answer;
  await expect.poll(answer).toBe("dismissed");
  const press = async (x: number) => {
    const at = await windowPoint(ada, { x, y: 120 });
    await ada.mouse.click(at.x, at.y);
  };
  await press(750);
  await ada.getByRole("button", { name: "Choose a file" }).waitFor();
  wrong.push(...(await look(ada, "asked-for-a-file")));
  await ada.getByRole("button", { name: "Cancel", exact: true }).click();
  await press(1050);
  await ada.getByRole("listbox").waitFor();
  wrong.push(...(await look(ada, "offered-a-choice")));
  await ada.getByRole("button", { name: "Cancel", exact: true }).click();
  await press(1150);
  await ada.getByRole("button", { name: "Save noise.bin" }).waitFor();
  wrong.push(...(await look(ada, "downloaded")));
  await ada.getByRole("textbox", { name: "Address" }).fill(scene.site.url("/check.html"));
  await ada.keyboard.press("Enter");
  await says(ada, "notice", "paused at a bot check");
  wrong.push(...(await look(ada, "paused")));
  await scene.rest(session, undefined, { method: "DELETE" });
  await says(ben, "notice", "The session has ended.");
  wrong.push(...(await look(ben, "over")));
  const { page: lost } = await openLink(browser, new URL("/live", scene.service.url).href);
  await says(lost, "notice", "This link is not complete.");
  wrong.push(...(await look(lost, "no-link")));
  expect(wrong).toEqual([]);
}, 180_000);
