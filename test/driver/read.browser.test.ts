import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { FixtureSite } from "../support/fixture-site.ts";
import { longTest } from "../support/long-test.ts";
import { runtimes } from "../support/runtimes.ts";
import { type DrivenSession, WorkerUnderTest } from "../support/worker-under-test.ts";

let site: FixtureSite;
let worker: WorkerUnderTest;

beforeAll(async () => {
  site = await new FixtureSite().start();
  worker = await WorkerUnderTest.start([site.host]);
});
afterAll(async () => {
  await worker?.stop();
  await site?.stop();
});

describe.each(runtimes)("a read in %s", (runtime) => {
  let session: DrivenSession;
  beforeAll(async () => {
    session = await worker.open({ runtime });
  });
  afterAll(() => session?.destroy());

  const open = (page: string) => session.navigate({ url: site.url(page) });
  const readWhole = async () => (await session.read({ maxBytes: 65_536, timeoutMs: 30_000 })).markdown;
  const refOf = async (element: string) => {
    const { snapshot } = await session.observe({ scope: 2 });
    return new RegExp(`${element} ref=(\\S+)`).exec(snapshot)?.[1] ?? `no ${element}`;
  };

  test("returns the main content as Markdown with tables, links, code and the text of frames", async () => {
    await open("/article.html");
    const markdown = await readWhole();
    expect(markdown).toMatch(/^# How tides work\n\nTides are caused/);
    expect(markdown).toContain("## A table of tides\n");
    expect(markdown).toContain("| Harbour | Morning | Evening |\n| --- | --- | --- |\n| Saint-Malo | 11.4 | 11.9 |");
    expect(markdown).toContain(`[gravity of the moon](${site.url("/moon.html?a=1&b=2")})`);
    expect(markdown).toContain(
      "```js\nfor (const { at, height } of readings) {\n  if (height > 3 && at < noon) console",
    );
    expect(markdown).toMatch(/2\. Compare it with the table\.\n\s+- Mind the \*\*summer time\*\*\./);
    expect(markdown).toContain("At 11:58 the gauge read 3.25 metres");
    expect(markdown).toContain(`![A gauge](${site.url("/gauge.png")})`);
    expect(markdown).not.toMatch(/About us|Copyright|Ignore your|Invisible|script text/);
  });

  test("returns all labels of an application without links", async () => {
    await open("/observed/dashboard.html");
    const markdown = await readWhole();
    for (const part of ["**Revenue**\n\n128,400 EUR", "**Refunds**\n\n31\n", "| Product | Sold | Revenue |"])
      expect(markdown).toContain(part);
  });

  test("returns the whole page if it has no main content, whatever the page overrides", async () => {
    await open("/desk.html");
    const markdown = await readWhole();
    for (const part of ["Ada", "\\[x\\] Paid", "Blue", "A chart", "In the **open** root", "In the closed root"])
      expect(markdown).toContain(part);
    expect(markdown).toContain("First block\n\nSecond block");
    expect(markdown).not.toMatch(/overridden|hunter2|javascript|Red|First blockSecond/);
  });

  test("reads a page that forbids parsing, and masks secrets before characters are escaped", async () => {
    await open("/strict.html");
    const variables = [{ name: "pin", value: "pass_word*1&2", domains: [site.host] }];
    const { markdown } = await session.read({}, { variables });
    expect(markdown).toMatch(/^# Strict rules\n\n/);
    expect(markdown).toContain("{{pin}}");
    expect(markdown).not.toMatch(/pass.?_word/);
  });

  test("returns parts that make up the whole", async () => {
    await open("/article.html");
    const whole = await readWhole();
    let joined = "";
    for (let offset: number | undefined = 0; offset !== undefined; ) {
      const { markdown, nextOffset }: { markdown: string; nextOffset?: number | undefined } = await session.read({
        offset,
        maxBytes: 1_024,
      });
      expect(Buffer.byteLength(markdown)).toBeLessThanOrEqual(1_024);
      joined += markdown;
      if (nextOffset !== undefined) expect(nextOffset).toBe([...joined].length);
      offset = nextOffset;
    }
    expect(joined).toBe(whole);
    expect(await session.read({ offset: 1_000_000 })).toMatchObject({ markdown: "" });
  });

  test("reads an element by ref, also in a frame, and reports a stale or unknown ref", async () => {
    await open("/article.html");
    const link = await refOf('link "gravity of the moon"');
    expect((await session.read({ ref: link })).markdown).toBe(
      `[gravity of the moon](${site.url("/moon.html?a=1&b=2")})`,
    );
    expect((await session.read({ ref: await refOf('link "More readings"') })).markdown).toContain("More readings");
    await open("/article.html");
    await expect(session.read({ ref: link })).rejects.toMatchObject({ slug: "conflict" });
    await expect(session.read({ ref: "s900e1" })).rejects.toMatchObject({
      slug: "validation-failed",
      errors: [{ field: "ref", message: expect.stringContaining("is unknown or too old") }],
    });
  });
});

describe("a read of a hostile page", () => {
  let session: DrivenSession;
  beforeAll(async () => {
    session = await worker.open({});
  });
  afterAll(() => session?.destroy());

  const become = (script: string) =>
    session.navigate({ url: site.url(`/script.html?${script.length}#${encodeURIComponent(script)}`) });

  test("returns the text of a frame inside of an element, also after a read of the whole page", async () => {
    await become(`document.body.innerHTML = '<div role="button"><iframe src="/article-frame.html"></iframe></div>'`);
    await expect.poll(async () => (await session.read()).markdown).toContain("At 11:58 the gauge read");
    const { snapshot } = await session.observe();
    const [, ref = ""] = /ref=(\S+)/.exec(snapshot) ?? [];
    expect((await session.read({ ref })).markdown).toContain("At 11:58 the gauge read");
  });

  // A parser of HTML flattens elements below 512 levels.
  test("returns the text below 600 levels of elements", async () => {
    await become(`
      let at = document.body;
      for (let i = 0; i < 600; i += 1) at = at.appendChild(document.createElement("div"));
      at.textContent = "the deepest text";`);
    const { markdown } = await session.read({ timeoutMs: 30_000 });
    expect(markdown).toContain("the deepest text");
  });

  test("numbers items and indents nested lists as a browser does", async () => {
    const lists = `<ol><li>a</li><ul><li>in a</li></ul><li>b</li><li value="10">c<ul><li>in c</li></ul></li><ul><li>after c</li></ul></ol>
      <hr><ol start="x"><li value="y">d</li></ol><hr><ol start="0"><li>e</li></ol>`;
    await become(`document.body.innerHTML = ${JSON.stringify(lists)}`);
    const { markdown } = await session.read();
    expect(markdown).toBe("1. a\n   - in a\n2. b\n10. c\n    - in c\n    - after c\n\n---\n\n1. d\n\n---\n\n0. e");
  });

  longTest(
    "reports that a page is too large",
    async () => {
      await become(`document.body.textContent = "word ".repeat(850_000);`);
      await expect(session.read()).rejects.toMatchObject({
        slug: "driver-error",
        detail: expect.stringContaining("too large to read as a whole"),
      });
    },
    60_000,
  );

  test("ends with the timeout on a page that never answers", async () => {
    await become(`setTimeout(() => { navigator.sendBeacon("/busy"); for (;;); }, 100)`);
    await expect.poll(() => site.requests).toContain("POST /busy");
    const beganAt = performance.now();
    await expect(session.read({ timeoutMs: 1_500 })).rejects.toMatchObject({ slug: "session-timeout" });
    expect(performance.now() - beganAt).toBeLessThan(20_000);
  });
});
