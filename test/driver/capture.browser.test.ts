import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { CaptureFormat, CaptureKind } from "../../src/gen/pilothouse/v1/session_pb.ts";
import { FixtureSite } from "../support/fixture-site.ts";
import { longTest } from "../support/long-test.ts";
import { runtimes } from "../support/runtimes.ts";
import { type DrivenSession, WorkerUnderTest } from "../support/worker-under-test.ts";

const { SCREENSHOT, DOM_SNAPSHOT, PDF } = CaptureKind;
const { PNG, JPEG, WEBP, MHTML, HTML } = CaptureFormat;

let site: FixtureSite;
let worker: WorkerUnderTest;

beforeAll(async () => {
  site = await new FixtureSite().start();
  worker = await WorkerUnderTest.start([site.host, site.host.replace("127.0.0.1", "localhost")]);
});

afterAll(async () => {
  await worker?.stop();
  await site?.stop();
});

describe.each(runtimes)("a capture in %s", (runtime) => {
  let session: DrivenSession;
  beforeAll(async () => {
    session = await worker.open({ runtime });
    await session.navigate({ url: site.url("/form.html") });
  });
  afterAll(() => session?.destroy());

  test.each([
    ["PNG", PNG, "image/png", "89504e47"],
    ["JPEG", JPEG, "image/jpeg", "ffd8ff"],
    ["WebP", WEBP, "image/webp", "52494646"],
  ])("takes a %s of the viewport, of the page and of an element", async (_name, format, contentType, magic) => {
    const viewport = await session.capture({ kind: SCREENSHOT, format });
    expect(viewport.header).toMatchObject({ contentType, width: 1280, height: 720 });
    expect(viewport.data.subarray(0, magic.length / 2).toString("hex")).toBe(magic);
    expect(Number(viewport.header.bytes)).toBe(viewport.data.length);
    const page = await session.capture({ kind: SCREENSHOT, format, fullPage: true });
    expect(page.header.width).toBe(1280);
    expect(page.header.height).toBeGreaterThan(3_000);
    const element = await session.capture({ kind: SCREENSHOT, format, selector: "#box" });
    expect(element.header).toMatchObject({ width: 200, height: 100 });
  });

  test("makes a smaller JPEG at a lower quality", async () => {
    const best = await session.capture({ kind: SCREENSHOT, format: JPEG, quality: 100 });
    const min = await session.capture({ kind: SCREENSHOT, format: JPEG, quality: 1 });
    expect(min.data.length).toBeLessThan(best.data.length / 2);
  });

  test("sends a short capture as one message with its header", async () => {
    const { data, chunkSizes } = await session.capture({ kind: SCREENSHOT, format: JPEG });
    expect(chunkSizes).toEqual([data.length]);
  });

  test("prints a PDF on the requested paper", async () => {
    const portrait = await session.capture({ kind: PDF, paper: "a4" });
    expect(portrait.header.contentType).toBe("application/pdf");
    expect(portrait.data.toString("latin1")).toMatch(/^%PDF-[\s\S]*MediaBox\s*\[0 0 59\d[.\d]* 84\d/);
    const landscape = await session.capture({ kind: PDF, paper: "letter", landscape: true, printBackground: true });
    expect(landscape.data.toString("latin1")).toMatch(/MediaBox\s*\[0 0 792 612\]/);
  });

  test("inlines frames and shadow roots in a DOM snapshot", async () => {
    await session.navigate({ url: site.url("/nested.html") });
    const typed = { selector: "#frame-input", frame: ["#outer", "iframe.inner"], text: 'in "frame" & <more>' };
    await session.interact({ action: { case: "type", value: typed } });
    await session.interact({ action: { case: "type", value: { selector: "#deep-input", text: "deep text" } } });
    const { data, header } = await session.capture({ kind: DOM_SNAPSHOT, format: HTML });
    expect(header.contentType).toBe("text/html; charset=utf-8");
    const html = data.toString();
    expect(html).toMatch(/^<!DOCTYPE html><html>/);
    expect(html).toContain('<template shadowrootmode="open"><p>in the shadow</p>');
    expect(html).toContain('<input id="deep-input" value="deep text">');
    expect(html).toContain("<p>outer &amp;amp; &quot;quoted&quot;</p>".replaceAll('"', "&quot;"));
    const replayed = await session.capture({ kind: DOM_SNAPSHOT });
    expect(replayed.data.toString()).toBe(html);
  });

  test("snapshots frames of other sites, unaffected by builtins that the page has changed", async () => {
    await session.navigate({ url: site.url("/liar.html") });
    const { data } = await session.capture({ kind: DOM_SNAPSHOT });
    const html = data.toString();
    expect(html).toContain("<p>the truth</p>");
    expect(html).toContain("outer &amp;amp;");
    expect(html).toMatch(/^<!DOCTYPE html><html>/);
    expect(html).not.toContain("a lie<");
    expect((await session.state()).title).toBe("heard nothing");
  });

  test("leaves typed passwords out of a DOM snapshot", async () => {
    await session.navigate({ url: site.url("/form.html") });
    await session.interact({ action: { case: "type", value: { selector: "#empty", text: "said aloud" } } });
    await session.interact({ action: { case: "type", value: { selector: "#secret", text: "kept back" } } });
    const html = (await session.capture({ kind: DOM_SNAPSHOT })).data.toString();
    expect(html).toContain('<input id="empty" value="said aloud">');
    expect(html).toContain('<input id="secret" type="password">');
    expect(html).not.toContain("kept back");
  });

  test("captures MHTML", async () => {
    await session.navigate({ url: site.url("/plain.html") });
    const { data, header } = await session.capture({ kind: DOM_SNAPSHOT, format: MHTML });
    expect(header.contentType).toBe("multipart/related");
    expect(data.toString()).toContain("Snapshot-Content-Location");
  });

  longTest(
    "streams a large snapshot in chunks of 256 KiB, and refuses one above 64 MiB with its size",
    async () => {
      // The other runtime also streams the largest one.
      const megabytes = runtime === "chromium" ? 63 : 5;
      await session.navigate({ url: site.url(`/text?megabytes=${megabytes}`), timeoutMs: 60_000 });
      const { data, header, chunkSizes } = await session.capture({ kind: DOM_SNAPSHOT });
      expect(data.length).toBe(Number(header.bytes));
      expect(data.length).toBeGreaterThan(megabytes * 1024 * 1024);
      expect(Math.max(...chunkSizes)).toBe(256 * 1024);
      expect(data.toString("latin1").split("\n")).toHaveLength(megabytes * 16_384 + 1);
      await session.navigate({ url: site.url("/text?megabytes=65"), timeoutMs: 60_000 });
      await expect(session.capture({ kind: DOM_SNAPSHOT })).rejects.toMatchObject({
        slug: "driver-error",
        extensions: { capture_bytes: expect.any(Number) },
      });
    },
    90_000,
  );

  test("reports an invalid selector and a short timeout", async () => {
    await session.navigate({ url: site.url("/plain.html") });
    await expect(session.capture({ kind: SCREENSHOT, selector: "a[" })).rejects.toMatchObject({
      slug: "validation-failed",
      detail: "selector: is not a CSS selector",
    });
    await session.navigate({ url: site.url("/tall?pixels=50000") });
    await expect(session.capture({ kind: SCREENSHOT, fullPage: true, timeoutMs: 1 })).rejects.toMatchObject({
      slug: "session-timeout",
      detail: "the page did not respond within 1 ms: try again, or increase timeout_ms",
    });
  });
});
