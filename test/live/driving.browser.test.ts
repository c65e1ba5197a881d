import type { Browser, BrowserContextOptions, CDPSession, Page } from "playwright";
import { afterAll, beforeAll, beforeEach, expect, onTestFinished, test } from "vitest";
import { borrowCdpScene, type CdpScene } from "../support/cdp-proxy-scene.ts";
import { InputSite } from "../support/input-site.ts";
import { handBack, type LiveViewer, openLink, says, takeControl, windowPoint } from "../support/live-viewer.ts";
import { launchPlainBrowser } from "../support/plain-browser.ts";

let site: InputSite;
let scene: CdpScene;
let browser: Browser;
let session: string;
let link: string;

beforeAll(async () => {
  const [borrowed, launched] = await Promise.all([borrowCdpScene(), launchPlainBrowser()]);
  [scene, browser] = [borrowed, launched];
  site = await InputSite.start(borrowed.ports[0]);
  session = await scene.open();
  link = await makeLink({ control: true, name: "Ada" });
}, 120_000);
afterAll(async () => {
  await browser?.close();
  await scene?.[Symbol.asyncDispose]();
  await site?.[Symbol.asyncDispose]();
}, 60_000);

beforeEach(async () => {
  await scene.rest(`${session}/navigate`, { url: site.url });
  site.told.length = 0;
});

async function makeLink(request: object): Promise<string> {
  return (await scene.rest(`${session}/view-links`, request)).body.url;
}

/** Viewer on a desktop, whom tests share. */
let desktop: LiveViewer | undefined;

/** Opens the link on a desktop or as `options` tell, and takes control until the test ends. */
async function openInControl(options?: BrowserContextOptions): Promise<{ page: Page; keys: CDPSession }> {
  const viewer = (!options && desktop) || (await openLink(browser, link, options));
  if (!options) desktop = viewer;
  const { page, faults } = viewer;
  await takeControl(page);
  // Positions in the window depend on the picture's size.
  await expect.poll(() => page.locator("canvas").getAttribute("data-sequence"), { timeout: 20_000 }).not.toBe(null);
  onTestFinished(async () => {
    await handBack(page);
    expect(faults).toEqual([]);
    if (options) await page.context().close();
  });
  return { page, keys: await page.context().newCDPSession(page) };
}

const eventually = <Value>(look: () => Value) => expect.poll(look, { timeout: 20_000 });
const told = (type: string) => site.told.filter((each) => each.startsWith(`${type} `));
/** The current value of the page's field. */
const value = (): string => {
  const [, text = '""'] =
    told("value")
      .at(-1)
      ?.match(/^value (.*) \d+ \d+$/s) ?? [];
  return JSON.parse(text);
};
/** Position of the last event of a type. */
const place = (type: string): number[] => (told(type).at(-1)?.split(" ") ?? []).slice(2).map(Number);

test("the mouse presses, drags and scrolls at its position in the picture", async () => {
  const { page } = await openInControl();
  const [from, to] = [await windowPoint(page, { x: 400, y: 300 }), await windowPoint(page, { x: 700, y: 500 })];
  await page.mouse.move(from.x, from.y);
  await page.mouse.down();
  await page.mouse.move(to.x, to.y, { steps: 4 });
  await page.mouse.up();
  await eventually(() => told("mouseup").length).toBe(1);
  for (const [type, [x = 0, y = 0]] of [
    ["mousedown", [400, 300]],
    ["mouseup", [700, 500]],
  ] as const) {
    const [atX = 0, atY = 0] = place(type);
    // Mouse positions are whole pixels of the window, whose picture is smaller than the page.
    expect(Math.max(Math.abs(atX - x), Math.abs(atY - y)), `${type} at ${atX}, ${atY}`).toBeLessThan(4);
  }
  await page.mouse.wheel(0, 120);
  await eventually(() => told("wheel").length).toBeGreaterThan(0);
  await page.mouse.click(from.x, from.y, { button: "right" });
  await eventually(() => told("mousedown").at(-1)).toMatch(/^mousedown 2 /);
}, 60_000);

test("typed text arrives key by key, and text of every script unchanged", async () => {
  const { page } = await openInControl();
  await page.keyboard.type("Ab1 -");
  await eventually(value).toBe("Ab1 -");
  expect(told("keydown").map((each) => each.split(" ")[1])).toEqual(["A", "b", "1", "", "-"]);
  const scripts = "Grüße Привет 日本語 עברית नमस्ते 👩‍👩‍👧";
  await page.keyboard.insertText(scripts);
  await eventually(value).toBe(`Ab1 -${scripts}`);
  await page.keyboard.press("Home");
  await page.keyboard.press("Shift+End");
  await page.keyboard.press("Backspace");
  await eventually(value).toBe("");
}, 60_000);

test("an input method's composition happens in the page", async () => {
  const { keys } = await openInControl();
  // UI Events, 5.6.5 and 5.7.1.1: key 229 for each key of the input method, and compositionupdate for its text.
  for (const text of ["n", "に", "にほ", "にほん", "日本"]) {
    await keys.send("Input.dispatchKeyEvent", { type: "rawKeyDown", windowsVirtualKeyCode: 229, key: "Process" });
    await keys.send("Input.imeSetComposition", { text, selectionStart: text.length, selectionEnd: text.length });
  }
  await eventually(value).toBe("日本");
  await keys.send("Input.insertText", { text: "日本" });
  await eventually(() => told("compositionend").length).toBe(1);
  expect(value()).toBe("日本");
  // A cancelled composition leaves no text.
  await keys.send("Input.imeSetComposition", { text: "か", selectionStart: 1, selectionEnd: 1 });
  await eventually(value).toBe("日本か");
  await keys.send("Input.imeSetComposition", { text: "", selectionStart: 0, selectionEnd: 0 });
  await eventually(value).toBe("日本");
}, 60_000);

test("a phone's keyboard, which reports no keys, types and deletes", async () => {
  const { page, keys } = await openInControl({ viewport: { width: 390, height: 664 }, isMobile: true, hasTouch: true });
  await page.getByRole("button", { name: "Keyboard" }).tap();
  // Input Events Level 2, 5.1.2: the inputType names the action, and the keydown before it has the code 229.
  for (const text of ["h", "ho", "hol", "hola"]) {
    await keys.send("Input.dispatchKeyEvent", { type: "rawKeyDown", windowsVirtualKeyCode: 229, key: "Unidentified" });
    await keys.send("Input.imeSetComposition", { text, selectionStart: text.length, selectionEnd: text.length });
  }
  await keys.send("Input.insertText", { text: "hola " });
  await eventually(value).toBe("hola ");
  const isTaken = await page.evaluate(() => {
    const deed = { inputType: "deleteContentBackward", bubbles: true, cancelable: true };
    return document.activeElement?.dispatchEvent(new InputEvent("beforeinput", deed)) === false;
  });
  expect(isTaken).toBe(true);
  await eventually(value).toBe("hola");
}, 60_000);

test("fingers tap and pinch", async () => {
  const { page, keys } = await openInControl({ viewport: { width: 390, height: 664 }, isMobile: true, hasTouch: true });
  const at = await windowPoint(page, { x: 640, y: 360 });
  await page.touchscreen.tap(at.x, at.y);
  await eventually(() => told("touchend").length).toBe(1);
  // The session's browser derives a click from the tap.
  await eventually(() => told("mousedown").length).toBe(1);
  const fingers = (apart: number) => [
    { x: at.x - apart, y: at.y, id: 0 },
    { x: at.x + apart, y: at.y, id: 1 },
  ];
  await keys.send("Input.dispatchTouchEvent", { type: "touchStart", touchPoints: fingers(20) });
  await keys.send("Input.dispatchTouchEvent", { type: "touchMove", touchPoints: fingers(60) });
  await keys.send("Input.dispatchTouchEvent", { type: "touchEnd", touchPoints: [] });
  await eventually(() => told("touchstart").length).toBeGreaterThan(1);
  await eventually(() => told("touchstart").length - told("touchend").length).toBe(0);
}, 60_000);

test("a viewer pastes 100 kB, and copies the selection", async () => {
  const { page } = await openInControl({ permissions: ["clipboard-read", "clipboard-write"] });
  const text = Array.from({ length: 10_000 }, (_, index) => `${index}`.padStart(9, "·")).join(" ");
  await page.evaluate((pasted) => navigator.clipboard.writeText(pasted), text);
  await page.keyboard.press("Control+V");
  await eventually(() => value().length).toBe(text.length);
  expect(value() === text).toBe(true);
  await page.evaluate(() => navigator.clipboard.writeText(""));
  await page.keyboard.press("Control+A");
  await page.keyboard.press("Control+C");
  const copied = () => page.evaluate(() => navigator.clipboard.readText());
  await expect.poll(async () => (await copied()) === text, { timeout: 20_000 }).toBe(true);
  await page.keyboard.press("Control+X");
  await eventually(value).toBe("");
}, 60_000);

test("tabs, address, back and reload operate the session's browser", async () => {
  const { page } = await openInControl();
  const address = page.getByRole("textbox", { name: "Address" });
  await address.fill(scene.site.url("/colours.html?red"));
  await address.press("Enter");
  await says(page, "title", "red");
  await page.getByRole("button", { name: "Back", exact: true }).click();
  await says(page, "title", "Input");
  await page.getByRole("button", { name: "Forward", exact: true }).click();
  await says(page, "title", "red");
  await eventually(async () => (await scene.rest(`${session}/state`)).body.loading).toBe(false);
  const open = await windowPoint(page, { x: 640, y: 20 });
  await page.mouse.click(open.x, open.y);
  await says(page, "title", "blue");
  await page.getByRole("button", { name: "red", exact: true }).click();
  await says(page, "title", "red");
  await page.getByRole("button", { name: "Close blue" }).click();
  await expect.poll(() => page.locator("#tabs li").count(), { timeout: 20_000 }).toBe(1);
  await address.fill("ftp://example.com");
  await address.press("Enter");
  await says(page, "notice", "must be http, https or about:blank");
}, 60_000);

test("on a phone the picture has 85 % of the height, also under a message", async () => {
  const { page } = await openInControl({ viewport: { width: 390, height: 844 }, isMobile: true, hasTouch: true });
  const pictureHeight = async () => (await page.locator("canvas").boundingBox())?.height ?? 0;
  const before = await pictureHeight();
  expect(before).toBeGreaterThan(0.85 * 844);
  const address = page.getByRole("textbox", { name: "Address" });
  await address.fill("ftp://example.com");
  await address.press("Enter");
  await page.locator("#notice").getByText("must be http, https or about:blank").waitFor();
  expect(await pictureHeight()).toBe(before);
  // A focused address is selected, so that typing replaces it.
  await expect.poll(() => address.inputValue()).toBe(site.url);
  await address.tap();
  await page.keyboard.type("example.com");
  expect(await address.inputValue()).toBe("example.com");
}, 60_000);

test("a viewer who requests control sees its holder and the result", async () => {
  const { page } = await openInControl();
  const { page: other } = await openLink(browser, await makeLink({ control: true, name: "Ben" }));
  await says(other, "control-status", /^Ada has control \(since \d/);
  await other.clock.install();
  await other.clock.pauseAt(new Date(Date.now() + 10_000));
  await other.getByRole("button", { name: "Take control" }).click();
  await says(other, "notice", "Ada has control at the moment.");
  await other.clock.runFor(3_000);
  expect(await other.locator("#notice").textContent()).toContain("Ada has control at the moment.");
  await other.clock.runFor(10_000);
  await says(other, "notice", /^(?!Ada has control at)/);
  await other.clock.resume();
  const watching = await openLink(browser, await makeLink({ name: "Cleo" }));
  await says(watching.page, "viewers", "3 watching: Ada, Ben, you");
  expect(await watching.page.getByRole("button", { name: "Take control" }).count()).toBe(0);
  await handBack(page);
  await takeControl(other);
  await says(page, "control-status", "Ben has control");
  await handBack(other);
  await takeControl(page);
  for (const each of [other, watching.page]) await each.context().close();
}, 60_000);

test("control is taken, used and returned by keyboard", async () => {
  const { page } = await openLink(browser, link);
  await page.getByRole("button", { name: "Take control" }).waitFor();
  const focused = () => page.evaluate(() => document.activeElement?.textContent || document.activeElement?.id);
  await page.keyboard.press("Tab");
  expect(await focused()).toBe("Take control");
  await page.keyboard.press("Enter");
  await expect.poll(focused).toBe("keys");
  await page.keyboard.type("ok");
  await page.keyboard.press("Tab");
  await eventually(() => told("keydown").at(-1)).toMatch(/^keydown Tab/);
  expect(value()).toBe("ok");
  await page.keyboard.press("Shift+Escape");
  expect(await focused()).toBe("Hand back");
  await page.keyboard.press("Enter");
  await says(page, "control-status", "Nobody is in control");
  await page.context().close();
}, 60_000);

test("only configured origins may embed the page, which loads nothing from other hosts", async () => {
  const { headers } = await fetch(new URL("/live", scene.service.url));
  const policy = headers.get("content-security-policy") ?? "";
  expect(policy.split("; ")).toEqual([
    "default-src 'none'",
    expect.stringMatching(/^style-src 'sha256-\S+'$/),
    expect.stringMatching(/^script-src 'sha256-\S+'$/),
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'self' https://desk.example",
    "connect-src 'self'",
  ]);
});
