import { createHash, randomBytes } from "node:crypto";
import { readFile } from "node:fs/promises";
import type { Browser, Page } from "playwright";
import { afterAll, afterEach, beforeAll, expect, onTestFinished, test } from "vitest";
import { borrowCdpScene, type CdpScene } from "../support/cdp-proxy-scene.ts";
import { noise } from "../support/fixture-site.ts";
import { LiveClient, type LiveMessage } from "../support/live-client.ts";
import { handBack, type LiveViewer, openLink, says, takeControl, windowPoint } from "../support/live-viewer.ts";
import { launchPlainBrowser } from "../support/plain-browser.ts";
import { runtimes } from "../support/runtimes.ts";

let scene: CdpScene;
let browser: Browser;

beforeAll(async () => {
  [scene, browser] = await Promise.all([borrowCdpScene(), launchPlainBrowser()]);
}, 120_000);
afterAll(async () => {
  await browser?.close();
  await scene?.[Symbol.asyncDispose]();
}, 60_000);

const pollOptions = { timeout: 20_000 };

/** Opens a session. */
async function open(request: object = {}) {
  const session = await scene.open(request);
  const state = async () => (await scene.rest(`${session}/state`)).body;
  let shownAt = 0;
  return {
    session,
    state,
    /** Shows a page in the session's only tab. */
    show: async (path: string): Promise<void> => {
      for (const { id, active } of (await state()).pages)
        if (!active) await scene.rest(`${session}/interact`, { action: { kind: "close_page", page_id: id } });
      await scene.rest(`${session}/navigate`, { url: scene.site.url(path) });
      shownAt = Date.now();
    },
    link: async (name: string, control = true): Promise<string> =>
      (await scene.rest(`${session}/view-links`, { name, control })).body.url,
    /** Dialogs since the page was shown. */
    dialogs: async () => (await state()).dialogs.filter(({ at }: { at: string }) => Date.parse(at) >= shownAt),
  };
}
type Opened = Awaited<ReturnType<typeof open>>;

/** Opens the session's link. */
async function join(opened: Opened, name: string, control = true): Promise<LiveViewer> {
  const viewer = await openLink(browser, await opened.link(name, control));
  // With a listener, the browser leaves file choosers to the test.
  viewer.page.on("filechooser", () => undefined);
  await expect.poll(() => viewer.page.locator("canvas").getAttribute("data-sequence"), pollOptions).not.toBe(null);
  return viewer;
}

/** Opens the session's link to watch, and closes it when the test ends. */
async function watch(opened: Opened): Promise<Page> {
  const { page, faults } = await join(opened, "Cleo", false);
  onTestFinished(async () => {
    expect(faults).toEqual([]);
    await page.context().close();
  });
  return page;
}

/** Sessions that tests share, by runtime, each with a viewer. */
const shared = new Map<string, { opened: Opened; ada: LiveViewer }>();
afterEach(() => {
  for (const { ada } of shared.values()) expect(ada.faults).toEqual([]);
});

/** Shows a page in the shared session of a runtime, to the viewer Ada without control. */
async function share(path = "/asking.html", runtime = "headless-shell"): Promise<{ opened: Opened; page: Page }> {
  const known = shared.get(runtime);
  const opened = known?.opened ?? (await open({ runtime }));
  if (known && (await known.ada.page.getByRole("button", { name: "Hand back" }).isVisible()))
    await handBack(known.ada.page);
  await opened.show(path);
  const ada = known?.ada ?? (await join(opened, "Ada"));
  shared.set(runtime, { opened, ada });
  return { opened, page: ada.page };
}

/** Shows a page in the shared session of a runtime, to the viewer Ada in control. */
async function control(...where: Parameters<typeof share>): Promise<{ opened: Opened; page: Page }> {
  const { opened, page } = await share(...where);
  await takeControl(page);
  return { opened, page };
}

/** Parts of the page from left to right. */
const parts = [
  "alert",
  "confirm",
  "prompt",
  "leave",
  "loop",
  "huge",
  "too-huge",
  "file",
  "files",
  "send",
  "land",
  "download",
] as const;

/** Clicks a part of the session's page in the picture. */
async function clickOn(page: Page, part: (typeof parts)[number]): Promise<void> {
  const at = await windowPoint(page, { x: parts.indexOf(part) * 100 + 50, y: 120 });
  await page.mouse.click(at.x, at.y);
}

const panel = (page: Page) => page.locator("#question");
const asks = (page: Page, text: string | RegExp) =>
  expect
    .poll(
      () =>
        panel(page)
          .filter({ visible: true })
          .textContent({ timeout: 1_000 })
          .catch(() => ""),
      pollOptions,
    )
    .toMatch(text);
const titled = (opened: Opened, title: string | RegExp) =>
  expect.poll(async () => (await opened.state()).title, pollOptions).toMatch(title);
const asksNothing = (page: Page) => expect.poll(() => panel(page).isVisible(), pollOptions).toBe(false);

test.each(runtimes)(
  "the viewer in control of %s answers its dialogs by mouse and by keyboard",
  async (runtime) => {
    const { opened, page } = await control("/asking.html", runtime);

    await clickOn(page, "confirm");
    await asks(page, /Asking asks:\s+Really\?/);
    expect(await opened.dialogs()).toMatchObject([{ kind: "confirm", message: "Really?", answer: "pending" }]);
    await page.getByRole("button", { name: "OK" }).click();
    await titled(opened, "confirm true");
    await asksNothing(page);
    expect(await opened.dialogs()).toMatchObject([{ kind: "confirm", answer: "accepted" }]);

    await clickOn(page, "prompt");
    await asks(page, "Name?");
    const field = page.getByRole("textbox", { name: "Name?" });
    expect(await field.inputValue()).toBe("x");
    // The field has the focus already.
    await page.keyboard.press("ControlOrMeta+A");
    await page.keyboard.insertText("Grüße 日本語");
    await page.keyboard.press("Enter");
    await titled(opened, "prompt Grüße 日本語");

    await clickOn(page, "prompt");
    await asks(page, "Name");
    await page.keyboard.press("Escape");
    await titled(opened, "prompt null");

    await clickOn(page, "alert");
    await asks(page, "hello");
    expect(await page.getByRole("button", { name: "Cancel" }).count()).toBe(0);
    await page.keyboard.press("Enter");
    await titled(opened, "alerted");
    // The page receives keys again.
    await expect.poll(() => page.evaluate(() => document.activeElement?.id), pollOptions).toBe("keys");
  },
  90_000,
);

test("the viewer in control decides whether a page may prevent its unload", async () => {
  const { opened, page } = await control();
  await clickOn(page, "leave");
  await titled(opened, "armed");
  const reload = page.getByRole("button", { name: "Reload" });
  await reload.click();
  await asks(page, "What was entered may be lost");
  await page.getByRole("button", { name: "Stay" }).click();
  await asksNothing(page);
  expect(await opened.dialogs()).toMatchObject([{ kind: "beforeunload", answer: "dismissed" }]);
  await titled(opened, "armed");
  await reload.click();
  await asks(page, "What was entered may be lost");
  await page.getByRole("button", { name: "Leave" }).click();
  await says(page, "title", "Asking");
}, 90_000);

test("other viewers see a dialog but cannot answer it", async () => {
  const { opened, page } = await control();
  const watching = await watch(opened);
  const keyOf = (url: string) => new URL(url).hash.slice(1);
  using ben = await LiveClient.join(scene.service.url, keyOf(await opened.link("Ben")));
  using dan = await LiveClient.join(scene.service.url, keyOf(await opened.link("Dan", false)));
  await clickOn(page, "confirm");
  await asks(watching, /Asking asks: Ada must answer\.\s+Really\?/);
  expect(await panel(watching).getByRole("button").count()).toBe(0);
  const { state } = await ben.receive((message) => message.state?.questions?.length === 1);
  const [{ id: questionId, ...question }] = state.questions;
  expect(question).toMatchObject({ page_id: "page_1", kind: "confirm", message: "Really?", default_text: "" });
  const answer = { question_id: questionId, accept: true };
  ben.send({ answer });
  const { refused } = await ben.receive((message) => message.refused);
  expect(refused).toMatchObject({ status: 409, type: expect.stringMatching(/conflict$/) });
  dan.send({ answer });
  expect(await dan.receive((message) => message.refused)).toMatchObject({ refused: { status: 403 } });
  expect(await opened.dialogs()).toMatchObject([{ answer: "pending" }]);
  await page.getByRole("button", { name: "Cancel" }).click();
  await titled(opened, "confirm false");
  await asksNothing(watching);
}, 90_000);

test("a dialog is answered once when two viewers answer it", async () => {
  const { opened } = await share();
  using ada = await LiveClient.join(scene.service.url, new URL(await opened.link("Ada")).hash.slice(1));
  ada.send({ take_control: {} });
  await ada.receive(({ state }) => state?.control.state === "human_control");
  ada.send({ input: { events: ["pointer_down", "pointer_up"].map((kind) => ({ kind, x: 150, y: 120 })) } });
  const { state } = await ada.receive((message) => message.state?.questions?.length === 1);
  const answer = { question_id: state.questions[0].id, accept: true };
  ada.send({ answer });
  ada.send({ answer });
  const { refused } = await ada.receive((message) => message.refused);
  expect(refused).toMatchObject({ status: 404 });
  await titled(opened, "confirm true");
  ada.send({ hand_back: {} });
  await ada.receive(() => ada.received.findLast(({ state }) => state)?.state.control.state === "api");
}, 60_000);

test("returning control answers dialogs by policy, and only the viewer in control sees new ones", async () => {
  const { opened, page } = await control();
  await clickOn(page, "prompt");
  await asks(page, "Name");
  await handBack(page);
  await titled(opened, "prompt null");
  await asksNothing(page);
  expect(await opened.dialogs()).toMatchObject([{ kind: "prompt", answer: "dismissed" }]);
  const tap = { action: { kind: "tap", selector: "#confirm" } };
  expect(await scene.rest(`${opened.session}/interact`, tap)).toMatchObject({ status: 200 });
  expect(await opened.state()).toMatchObject({ title: "confirm false" });
}, 90_000);

test("a page that opens dialogs endlessly, or with megabytes of text, cannot block the live page", async () => {
  const { opened, page } = await control();
  await clickOn(page, "loop");
  for (let asked = 1; asked <= 3; asked++) {
    await asks(page, new RegExp(`\\s${asked}\\s`));
    await page.keyboard.press(asked % 2 ? "Enter" : "Escape");
    await titled(opened, `${asked} ${asked % 2 === 1}`);
  }
  await handBack(page);
  await titled(opened, "20 false");
  expect((await opened.dialogs()).length).toBe(10);
  await takeControl(page);
  await clickOn(page, "huge");
  await asks(page, /h{1000}/);
  expect((await page.locator("#question-message").textContent())?.length).toBe(1_000);
  await page.getByRole("button", { name: "OK" }).click();
  await titled(opened, "huge 1000");
  // A dialog whose text is too long blocks only its page, which can be closed.
  await clickOn(page, "too-huge");
  await expect.poll(async () => (await opened.state()).loading, pollOptions).toBe(true);
  await page.getByRole("button", { name: "Close huge" }).click();
  await says(page, "title", "Untitled page");
}, 90_000);

/** Chooses files of the viewer's machine in the panel. */
async function choose(page: Page, files: readonly { name: string; buffer: Buffer }[]): Promise<void> {
  const opened = page.waitForEvent("filechooser");
  await page.keyboard.press("Enter");
  await (await opened).setFiles(files.map((file) => ({ ...file, mimeType: "application/octet-stream" })));
}

const sha1 = (bytes: Buffer) => createHash("sha1").update(bytes).digest("hex");

test.each(runtimes)(
  "the viewer in control of %s provides files to a page, which arrive unchanged",
  async (runtime) => {
    const { opened, page } = await control("/asking.html", runtime);
    const one = { name: "Grüße \u0001 1.txt", buffer: randomBytes(3_000_000) };
    const same = [1_000, 2_000].map((size) => ({ name: "photo.jpg", buffer: randomBytes(size) }));

    await clickOn(page, "file");
    await asks(page, /Asking asks you for a file\.\s+Accepted types: \.txt,image\/\*\./);
    expect(await opened.dialogs()).toMatchObject([{ kind: "file_chooser", answer: "pending" }]);
    await choose(page, [one]);
    await titled(opened, "change Grüße _ 1.txt:3000000");
    await asksNothing(page);
    expect(await opened.dialogs()).toMatchObject([{ kind: "file_chooser", answer: "accepted" }]);
    // The page receives keys again.
    await expect.poll(() => page.evaluate(() => document.activeElement?.id), pollOptions).toBe("keys");

    await clickOn(page, "files");
    await asks(page, "asks you for files.");
    await choose(page, same);
    await titled(opened, "change photo.jpg:1000,photo (1).jpg:2000");
    await clickOn(page, "send");
    await titled(opened, /^received/);
    const [first, second] = same;
    const received = [
      ["file", "Grüße _ 1.txt", sha1(one.buffer)],
      ["files", "photo.jpg", sha1(first?.buffer ?? Buffer.of())],
      ["files", "photo (1).jpg", sha1(second?.buffer ?? Buffer.of())],
    ];
    expect((await opened.state()).title).toBe(`received ${JSON.stringify(received)}`);
  },
  90_000,
);

test.each(runtimes)(
  "frames in another process of %s and opened windows request files too",
  async (runtime) => {
    const { opened, page } = await control("/asking-framed.html", runtime);
    await clickOn(page, "file");
    await asks(page, "Framed asks you for a file.");
    await choose(page, [{ name: "a.txt", buffer: Buffer.from("abc") }]);
    await titled(opened, "change a.txt:3");
    await clickOn(page, "land");
    await asks(page, / offers a choice\.\s+Country/);
    await page.getByRole("option", { name: "Poland" }).click();
    await titled(opened, "input true Poland, change true Poland");
    const button = await windowPoint(page, { x: 710, y: 410 });
    await page.mouse.click(button.x, button.y);
    await says(page, "title", "Asking");
    await expect.poll(async () => (await opened.state()).loading, pollOptions).toBe(false);
    await clickOn(page, "file");
    await asks(page, "Asking asks you for a file.");
    await choose(page, [{ name: "b.txt", buffer: Buffer.from("abcd") }]);
    await titled(opened, "change b.txt:4");
  },
  90_000,
);

test("the viewer in control may decline a file, and a request ends with its document", async () => {
  const { opened, page } = await control();
  await clickOn(page, "file");
  await asks(page, "asks you for a file");
  await page.keyboard.press("Escape");
  await titled(opened, "cancel");
  await asksNothing(page);
  expect(await opened.dialogs()).toMatchObject([{ answer: "dismissed" }]);
  // A second request replaces the first.
  await clickOn(page, "file");
  await asks(page, "asks you for a file");
  await clickOn(page, "files");
  await asks(page, "asks you for files");
  expect(await opened.dialogs()).toMatchObject([{}, { answer: "dismissed" }, { answer: "pending" }]);
  await page.getByRole("button", { name: "Reload" }).click();
  await asksNothing(page);
  await titled(opened, "Asking");
  // The title is set before the page's elements exist.
  await expect.poll(async () => (await opened.state()).loading, pollOptions).toBe(false);
  await clickOn(page, "files");
  await asks(page, "asks you for files");
  await handBack(page);
  await asksNothing(page);
  await clickOn(page, "files");
  expect((await opened.dialogs()).map(({ answer }: { answer: string }) => answer)).toEqual(Array(4).fill("dismissed"));
  expect((await opened.state()).title).toBe("Asking");
}, 90_000);

test("only the viewer in control uploads files to the session, which replace no other files", async () => {
  const opened = await open();
  await opened.show("/asking.html");
  const { session } = opened;
  const [ada, cleo] = await Promise.all([opened.link("Ada"), opened.link("Cleo", false)]);
  const viewerKey = "a secret of the viewer's";
  const tokenOf = (url: string) => new URL(url).hash.slice(1);
  const ask = (init: RequestInit, token: string, name: string, { to = session, key = viewerKey }) => {
    const headers = { authorization: `Bearer ${token}`, "x-viewer-key": key };
    return fetch(`${scene.service.url}${to}/live/files/${name}`, { ...init, headers });
  };
  const put = async (token: string, name: string, others = {}) => {
    const answer = await ask({ method: "PUT", body: "persons" }, token, name, others);
    return { status: answer.status, body: await answer.json() };
  };
  const get = async (token: string, name: string, others = {}) => (await ask({}, token, name, others)).status;
  await scene.rest(`${session}/files/a.txt`, undefined, { method: "PUT", body: "of the program" });
  expect(await put(tokenOf(ada), "a.txt")).toMatchObject({ status: 409 });
  using viewer = await LiveClient.join(scene.service.url, tokenOf(ada), { viewer_key: viewerKey });
  viewer.send({ take_control: {} });
  await viewer.receive(({ state }) => state?.control.state === "human_control");
  expect(await put(tokenOf(ada), "a.txt")).toMatchObject({ status: 201, body: { name: "a (1).txt", bytes: 7 } });
  expect(await put(tokenOf(cleo), "b.txt")).toMatchObject({ status: 403 });
  expect(await put(tokenOf(ada), "b.txt", { key: "another's" })).toMatchObject({ status: 409 });
  expect(await put(scene.service.key, "b.txt", { key: "" })).toMatchObject({ status: 409 });
  // Viewers cannot read API uploads, and only the viewer in control reads downloads.
  expect(await get(tokenOf(ada), "a.txt")).toBe(404);
  viewer.send({ input: { events: ["pointer_down", "pointer_up"].map((kind) => ({ kind, x: 1150, y: 120 })) } });
  const isThere = (status: string) => (message: LiveMessage) => message.state?.downloads?.[0]?.status === status;
  await viewer.receive(isThere("finished"));
  expect(await get(tokenOf(ada), "noise.bin")).toBe(200);
  expect(await get(tokenOf(cleo), "noise.bin")).toBe(403);
  expect(await get(tokenOf(ada), "noise.bin", { key: "another's" })).toBe(409);
  await scene.rest(`${session}/files/noise.bin`, undefined, { method: "DELETE" });
  const { opened: another } = await share();
  expect(await put(tokenOf(ada), "b.txt", { to: another.session })).toMatchObject({ status: 404 });
  const { body } = await scene.rest(`${session}/files`);
  expect(body.data.map(({ name, bytes }: { name: string; bytes: number }) => [name, bytes])).toEqual([
    ["a (1).txt", 7],
    ["a.txt", "of the program".length],
  ]);
}, 60_000);

test.each(runtimes)(
  "the viewer in control of %s chooses from lists outside the picture, by mouse and by keyboard",
  async (runtime) => {
    const { opened, page } = await control("/asking.html", runtime);
    const watching = await watch(opened);
    await clickOn(page, "land");
    await asks(page, /Asking offers a choice\.\s+Country/);
    const list = page.getByRole("listbox");
    expect(await list.getByRole("option").allTextContents()).toEqual([
      "Atlantis",
      "El Dorado",
      "Norway",
      "Poland",
      "Zembla",
    ]);
    expect(await list.getByRole("option", { name: "El Dorado" }).isDisabled()).toBe(true);
    // The list is below or above the field that was clicked, and inside the window.
    const field = await windowPoint(page, { x: parts.indexOf("land") * 100 + 50, y: 120 });
    const box = await panel(page).boundingBox();
    const distance = box && (box.y > field.y ? box.y - field.y : field.y - box.y - box.height);
    expect(distance).toBeLessThan(20);
    expect(box && [box.x >= 0, box.x + box.width <= 1_280, box.x <= field.x, box.x + box.width >= field.x]).toEqual(
      Array(4).fill(true),
    );
    // On phones a finger can hit each choice.
    const desktop = page.viewportSize();
    await page.setViewportSize({ width: 390, height: 844 });
    expect((await list.getByRole("option").first().boundingBox())?.height).toBeGreaterThanOrEqual(36);
    await page.setViewportSize(desktop ?? { width: 1_280, height: 720 });
    await asks(watching, /Ada must answer/);
    expect(await panel(watching).getByRole("listbox").count()).toBe(0);
    await list.getByRole("option", { name: "Poland" }).click();
    await titled(opened, "input true Poland, change true Poland");
    await asksNothing(page);
    await expect.poll(() => page.evaluate(() => document.activeElement?.id), pollOptions).toBe("keys");

    // The list has the focus in the page, and then in the panel.
    await page.keyboard.press("Space");
    await asks(page, "Country");
    expect(await list.inputValue()).toBe("4");
    await page.keyboard.press("ArrowDown");
    await page.keyboard.press("Enter");
    await titled(opened, /Poland, input true Zembla, change true Zembla$/);
    await asksNothing(page);

    await page.keyboard.press("Space");
    await asks(page, "Country");
    await page.keyboard.press("Escape");
    await asksNothing(page);
    // The page has received only the keys of its list.
    await clickOn(page, "land");
    await asks(page, "Country");
    await clickOn(page, "alert");
    await asks(page, "hello");
    await page.keyboard.press("Enter");
    await asksNothing(page);
    await clickOn(page, "land");
    await asks(page, "Country");
    await handBack(page);
    await asksNothing(page);
    const tap = { action: { kind: "tap", selector: "#land" } };
    expect(await scene.rest(`${opened.session}/interact`, tap)).toMatchObject({ status: 200 });
    await asksNothing(page);
  },
  90_000,
);

test.each(runtimes)(
  "the viewer in control saves a file that a page of %s downloads, unchanged",
  async (runtime) => {
    const { page } = await control("/asking.html", runtime);
    const list = page.getByRole("list", { name: "Downloads" });
    const offers = (text: string) => expect.poll(() => list.allTextContents(), pollOptions).toEqual([text]);
    await clickOn(page, "download");
    await offers("noise.bin, 3.0 MBSave×");
    const saving = page.waitForEvent("download");
    await page.getByRole("button", { name: "Save noise.bin" }).press("Enter");
    const saved = await saving;
    expect(saved.suggestedFilename()).toBe("noise.bin");
    expect((await readFile(await saved.path())).equals(noise(3_000_000))).toBe(true);
    await page.getByRole("button", { name: "Dismiss noise.bin" }).press("Enter");
    await expect.poll(() => list.isVisible(), pollOptions).toBe(false);
    await clickOn(page, "download");
    await offers("noise (1).bin, 3.0 MBSave×");
    await handBack(page);
    await expect.poll(() => list.isVisible(), pollOptions).toBe(false);
  },
  60_000,
);

test("the viewer in control opens and closes tabs by keyboard", async () => {
  const { page } = await control();
  const tabs = page.getByRole("list", { name: "Tabs" }).getByRole("button");
  await page.getByRole("button", { name: "New tab" }).press("Enter");
  await expect.poll(() => tabs.allTextContents(), pollOptions).toEqual(["Asking", "×", "Untitled page", "×"]);
  // The address field has the focus.
  await page.keyboard.type(scene.site.url("/form.html"));
  await page.keyboard.press("Enter");
  await says(page, "title", "Form");
  await page.getByRole("button", { name: "Close Form" }).press("Enter");
  await says(page, "title", "Asking");
  await expect.poll(() => tabs.allTextContents(), pollOptions).toEqual(["Asking", "×"]);
}, 60_000);

test("a closed page withdraws its dialogs, and a session with an open dialog ends", async () => {
  const { opened, page } = await control();
  await clickOn(page, "confirm");
  await asks(page, "Really");
  await page.getByRole("button", { name: "Close Asking" }).click();
  await asksNothing(page);
  await says(page, "title", "Untitled page");
  const address = page.getByRole("textbox", { name: "Address" });
  await address.fill(scene.site.url("/asking.html"));
  await address.press("Enter");
  await says(page, "title", "Asking");
  await clickOn(page, "alert");
  await asks(page, "hello");
  await scene.rest(opened.session, undefined, { method: "DELETE" });
  await says(page, "notice", "The session has ended.");
  await asksNothing(page);
  shared.clear();
}, 90_000);
