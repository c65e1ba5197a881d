import { afterAll, beforeAll, describe, expect, onTestFinished, test } from "vitest";
import { CaptureKind, type InteractResponse } from "../../src/gen/pilothouse/v1/session_pb.ts";
import { FixtureSite } from "../support/fixture-site.ts";
import { runtimes } from "../support/runtimes.ts";
import { type DrivenSession, WorkerUnderTest } from "../support/worker-under-test.ts";

const site = new FixtureSite();
let worker: WorkerUnderTest;

beforeAll(async () => {
  await site.start();
  worker = await WorkerUnderTest.start([site.host]);
});

afterAll(async () => {
  await worker?.stop();
  await site.stop();
});

const tap = (session: DrivenSession, selector: string, timeoutMs = 5_000): Promise<InteractResponse> =>
  session.interact({ action: { case: "tap", value: { selector } }, timeoutMs });

describe.each(runtimes)("a page of %s", { timeout: 60_000 }, (runtime) => {
  /** Session of the tests that leave it with its first page. */
  let shared: DrivenSession;
  beforeAll(async () => {
    shared = await worker.open({ runtime });
  });
  afterAll(() => shared?.destroy());

  async function show(path: string): Promise<DrivenSession> {
    await shared.navigate({ url: site.url(path) });
    return shared;
  }

  async function open(path: string): Promise<DrivenSession> {
    const session = await worker.open({ runtime });
    onTestFinished(() => session.destroy());
    await session.navigate({ url: site.url(path) });
    return session;
  }

  test.each([
    ["a link leads to", "#link", "/slow"],
    ["a form leads to", "#send", "/slow?"],
    ["a script leads to", "#script", "/slow"],
    ["a link to a part of it leads to", "#part", "/leaving.html#part"],
    ["a script calls it", "#push", "/pushed"],
    ["the page keeps", "#nothing", "/leaving.html"],
  ])("answers a tap with the address that %s", async (_name, selector, path) => {
    const session = await show("/leaving.html");
    expect(await tap(session, selector)).toMatchObject({ url: site.url(path), pageId: "page_1", opened: [] });
  });

  test("answers a tap on a link to a silent server at its timeout", async () => {
    const session = await show("/leaving.html");
    expect(await tap(session, "#hanging", 1_500)).toMatchObject({ url: site.url("/leaving.html"), title: "Leaving" });
    expect(await session.navigate({ url: site.url("/plain.html") })).toMatchObject({ title: "Plain", httpStatus: 200 });
  });

  test("is not replaced because of a slow server", async () => {
    const session = await show("/plain.html");
    const before = site.requests.length;
    expect(await session.navigate({ url: site.url("/slow?ms=4000") })).toMatchObject({ title: "Slow" });
    expect(site.requests.slice(before).filter((request) => request === "GET /slow")).toHaveLength(1);
  });

  test("reports pages that a tap opens, and is activated and closed by its id", async () => {
    const session = await open("/popups.html");
    expect(await tap(session, "#open")).toMatchObject({ title: "Popups", pageId: "page_1", opened: ["page_2"] });
    expect(await tap(session, "#blank", 1_000).catch(({ slug }) => slug)).toBe("session-timeout");
    const activate = { case: "activatePage", value: { pageId: "page_1" } } as const;
    expect(await session.interact({ action: activate })).toMatchObject({ title: "Popups", pageId: "page_1" });
    expect(await tap(session, "#blank")).toMatchObject({ opened: ["page_3"] });
    const close = (pageId: string) => session.interact({ action: { case: "closePage", value: { pageId } } });
    expect(await close("page_3")).toMatchObject({ pageId: "page_1", title: "Popups" });
    expect((await session.state()).pages.map(({ id }) => id)).toEqual(["page_1", "page_2"]);
    await expect(close("page_3")).rejects.toMatchObject({ slug: "not-found" });
    const openPage = { case: "openPage", value: {} } as const;
    expect(await session.interact({ action: openPage })).toMatchObject({ pageId: "page_4", url: "about:blank" });
    await Promise.all([close("page_2"), close("page_4")]);
    expect(await close("page_1")).toMatchObject({ pageId: "page_5", url: "about:blank" });
  });

  test("goes back and forward in its history, and reloads", async () => {
    const session = await show("/leaving.html");
    await session.navigate({ url: site.url("/plain.html") });
    const go = (kind: "back" | "forward" | "reload") => session.interact({ action: { case: kind, value: {} } });
    expect(await go("back")).toMatchObject({ title: "Leaving" });
    await tap(session, "#part");
    expect(await go("back")).toMatchObject({ url: site.url("/leaving.html") });
    expect(await go("forward")).toMatchObject({ url: site.url("/leaving.html#part") });
    await expect(go("forward")).rejects.toMatchObject({ slug: "conflict" });
    const before = site.requests.length;
    expect(await go("reload")).toMatchObject({ title: "Leaving" });
    expect(site.requests.slice(before)).toContain("GET /leaving.html");
  });

  test("is captured during a reload", async () => {
    const session = await show("/plain.html");
    for (let round = 0; round < 4; round += 1) {
      const picture = session.capture({ kind: CaptureKind.SCREENSHOT, timeoutMs: 10_000 });
      await session.interact({ action: { case: "reload", value: {} } });
      expect(await picture).toMatchObject({ header: { contentType: "image/png" } });
    }
  });

  test("is reloaded and captured while the browser's error page is pending", async () => {
    const session = await show("/plain.html");
    for (let round = 0; round < 4; round += 1) {
      const url = round % 2 === 0 ? "http://127.0.0.1:1/" : site.url("/plain.html");
      // Shortest timeout: the document arrives after the answer.
      await session.navigate({ url, timeoutMs: 1 + round }).catch(() => undefined);
      expect(await session.capture({ kind: CaptureKind.SCREENSHOT })).toMatchObject({
        header: { contentType: "image/png" },
      });
      await session.navigate({ url, timeoutMs: 1 + round }).catch(() => undefined);
      const reload = session.interact({ action: { case: "reload", value: {} } });
      expect(await reload.catch(({ slug }) => slug)).not.toBe("internal");
    }
  });
});
