import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { FixtureSite } from "../support/fixture-site.ts";
import type { HostileDriver, Outcome } from "../support/hostile-runner.ts";
import { runtimes } from "../support/runtimes.ts";
import { workerDriver } from "../support/worker-driver.ts";
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

/** Actions on form.html, and the resulting title. */
const desktop: readonly (readonly [string, Record<string, unknown>, string])[] = [
  ["taps an element", { kind: "tap", selector: "#go" }, "click go 1"],
  ["taps twice", { kind: "tap", selector: "#go", count: 2 }, "click go 2"],
  ["taps with the right button", { kind: "tap", selector: "#go", button: 2 }, "menu go"],
  ["taps with the middle button", { kind: "tap", selector: "#go", button: 3 }, "middle go"],
  ["taps a point", { kind: "tap", x: 5, y: 600 }, "click 1"],
  ["taps the first visible of several matches", { kind: "tap", selector: ".twin" }, "click twin-shown 1"],
  ["scrolls to its target", { kind: "tap", selector: "#far" }, "click far 1"],
  ["presses a key", { kind: "key", key: "Enter" }, "key Enter"],
  ["presses a key with modifiers", { kind: "key", key: "a", modifiers: ["Control", "Shift"] }, "key ctrl+shift+A"],
  ["presses the plus key", { kind: "key", key: "+" }, "key +"],
  ["hovers", { kind: "hover", selector: "#hover" }, "hover"],
  ["drags between points", { kind: "drag", from: { selector: "#track" }, to: { x: 300, y: 300 } }, ""],
  [
    "swipes as a drag",
    { kind: "swipe", from: { selector: "#track" }, to: { selector: "#target" }, duration_ms: 100 },
    "",
  ],
];

describe.each(runtimes)("an interact in %s", (runtime) => {
  let session: DrivenSession;
  let driver: HostileDriver;

  beforeAll(async () => {
    session = await worker.open({ runtime });
    driver = workerDriver(session);
  });
  afterAll(() => session?.destroy());
  beforeEach(async () => {
    await driver.run("navigate", { url: site.url("/form.html") });
  });

  const act = (action: Record<string, unknown>, more = {}): Promise<Outcome> =>
    driver.run("interact", { action, ...more });
  /** Returns the DOM snapshot of the page. */
  const snapshot = async () => (await session.capture({ kind: 2 })).data.toString();

  test.each(desktop)("%s", async (_name, action, title) => {
    const { answer, problem } = await act(action);
    expect(problem).toBeUndefined();
    if (title !== "") expect(answer?.title).toBe(title);
    else expect(answer?.title).toMatch(/^mouseup moves many dx [1-9]/);
  });

  test.each([
    ["at once", { kind: "type", selector: "#empty", text: "héllo 🚀" }, "#empty", 'id="empty" value="héllo 🚀"'],
    [
      "key by key",
      { kind: "type", selector: "#empty", text: "hello", delay_ms: 5 },
      "#empty",
      'id="empty" value="hello"',
    ],
    ["after existing text", { kind: "type", selector: "#name", text: " L." }, "#name", 'id="name" value="Ada L."'],
    [
      "in place of existing text",
      { kind: "type", selector: "#name", text: "Eve", clear: true },
      "#name",
      'id="name" value="Eve"',
    ],
    ["into an editable element", { kind: "type", selector: "#editable", text: "!" }, "#editable", ">text!</div>"],
    ["into a textarea", { kind: "type", selector: "#notes", text: "er", delay_ms: 1 }, "#notes", "older</textarea>"],
  ])("types %s", async (_name, action, _selector, html) => {
    expect((await act(action)).problem).toBeUndefined();
    expect(await snapshot()).toContain(html);
  });

  test("types into the focused element", async () => {
    await act({ kind: "tap", selector: "#empty" });
    await act({ kind: "type", text: "focused" });
    expect(await snapshot()).toContain('id="empty" value="focused"');
  });

  test.each([
    ["by value", { kind: "select", selector: "#country", values: ["de"] }, '<option value="de" selected="">'],
    ["by label", { kind: "select", selector: "#country", values: ["Germany"] }, '<option value="de" selected="">'],
    ["several", { kind: "select", selector: "#many", values: ["a", "c"] }, '<option value="c" selected="">'],
  ])("selects %s", async (_name, action, html) => {
    expect((await act(action)).problem).toBeUndefined();
    expect(await snapshot()).toContain(html);
  });

  test("reports that a select lacks an option", async () => {
    const { problem } = await act({ kind: "select", selector: "#country", values: ["fr"] }, { timeout_ms: 1_000 });
    expect(problem).toMatchObject({ slug: "session-timeout", detail: expect.stringContaining("options") });
  });

  test("scrolls the page and answers once it has scrolled", async () => {
    await act({ kind: "scroll", dx: 0, dy: 700 });
    expect((await session.state()).scroll).toMatchObject({ x: 0, y: 700 });
  });

  test("scrolls the content of a frame and answers once it has scrolled", { timeout: 60_000 }, async () => {
    await driver.run("navigate", { url: site.url("/scrolling-frame.html") });
    let scrolled = 0;
    const scroll = async () => {
      const began = performance.now();
      expect((await act({ kind: "scroll", dx: 0, dy: 10 })).problem).toBeUndefined();
      const took = performance.now() - began;
      scrolled += 10;
      expect((await session.state()).title).toBe(String(scrolled));
      return took;
    };
    // On a busy machine each call may wait this long for a page that does not scroll.
    await expect.poll(scroll, { timeout: 50_000 }).toBeLessThan(500);
  });

  test("scrolls an element without scrolling the page", async () => {
    expect((await act({ kind: "scroll", selector: "#box", dx: 0, dy: 300 })).problem).toBeUndefined();
    expect((await session.state()).scroll).toMatchObject({ x: 0, y: 0 });
  });

  test("refuses an invalid action, naming the field", async () => {
    for (const [name, action, field] of [
      ["a selector with a syntax error", { kind: "tap", selector: "a[" }, "action.selector"],
      ["a selector that the browser refuses", { kind: "tap", selector: "a:nope(b)" }, "action.selector"],
      ["a chain of selectors", { kind: "tap", selector: "body >> text=Go" }, "action.selector"],
      [
        "a frame's selector with a syntax error",
        { kind: "tap", selector: "a", frame: ["iframe", "["] },
        "action.frame[1]",
      ],
      [
        "a place's selector with a syntax error",
        { kind: "drag", from: { selector: "#go" }, to: { selector: "]" } },
        "action.to.selector",
      ],
      ["an unknown key", { kind: "key", key: "NoSuchKey" }, "action.key"],
      ["clear without a selector", { kind: "type", text: "x", clear: true }, "action.clear"],
    ] as const) {
      const { problem } = await act(action, { timeout_ms: 5_000 });
      const detail = expect.stringMatching(`^${RegExp.escape(field)}: `);
      expect(problem, name).toMatchObject({ slug: "validation-failed", detail });
    }
  });
});

describe("an interact on a touch device", () => {
  let session: DrivenSession;
  afterEach(() => session.destroy());

  test("taps by touch, swipes by touch, and clicks with a count", async () => {
    session = await worker.open({ archetype: "pixel-7" });
    const driver = workerDriver(session);
    await driver.run("navigate", { url: site.url("/form.html") });
    const act = async (action: object) => (await driver.run("interact", { action })).answer?.title;
    await act({ kind: "swipe", from: { selector: "#track" }, to: { selector: "#target" }, duration_ms: 100 });
    // The page receives the last touch after the browser has accepted it.
    await expect.poll(async () => (await session.state()).title).toMatch(/^touchend moves many dx/);
    expect(await act({ kind: "tap", selector: "#go", count: 2 })).toBe("click go 2");
    await act({ kind: "tap", selector: "#check" });
    const { data } = await session.capture({ kind: 2 });
    expect(data.toString()).toContain('type="checkbox" checked=""');
  });
});

describe.each(runtimes)("a wait in %s", (runtime) => {
  let session: DrivenSession;
  let driver: HostileDriver;
  beforeAll(async () => {
    session = await worker.open({ runtime });
    driver = workerDriver(session);
  });
  afterAll(() => session?.destroy());
  beforeEach(async () => {
    await driver.run("navigate", { url: site.url("/wait.html") });
  });

  test.each([
    ["an element is visible", { kind: "selector", selector: "#late" }],
    ["an element is attached", { kind: "selector", selector: "#attached", state: 3 }],
    ["an element is hidden", { kind: "selector", selector: "#hides", state: 2 }],
    ["an element is detached", { kind: "selector", selector: "#gone", state: 4 }],
    ["the address matches", { kind: "url", pattern: "**/shop/*?order=1" }],
    ["the page has loaded", { kind: "load_state" }],
    ["a text is visible", { kind: "text", text: "thank you, ada" }],
    ["the network is idle", { kind: "network_idle" }],
    ["the document is idle", { kind: "document_idle" }],
  ])("holds when %s", async (_name, condition) => {
    expect((await driver.run("wait", { condition, timeout_ms: 20_000 })).problem).toBeUndefined();
  });

  test.each([
    ["an element", { kind: "selector", selector: "#never" }, /did not become visible/],
    [
      "an address",
      { kind: "url", pattern: "https://*/never" },
      /expected the page.s address to match https:\/\/\*\/never .*, got http\S+ at the timeout/,
    ],
    ["a text", { kind: "text", text: "never" }, /text did not appear/],
  ])("times out for %s that never appears", async (_name, condition, detail) => {
    const wait = async () => (await driver.run("wait", { condition, timeout_ms: 300 })).problem;
    // On a busy machine the page may have no time to report the mismatch.
    await expect
      .poll(wait, { timeout: 15_000 })
      .toMatchObject({ slug: "session-timeout", detail: expect.stringMatching(detail) });
  });

  test("does not block on a pattern that makes regular expressions backtrack", async () => {
    await driver.run("navigate", { url: site.url(`/wait.html#${"a".repeat(180)}`) });
    const beganAt = performance.now();
    const { problem } = await driver.run("wait", {
      condition: { kind: "url", pattern: `${"**a".repeat(4)}**b` },
      timeout_ms: 300,
    });
    expect(problem).toMatchObject({ slug: "session-timeout" });
    expect(performance.now() - beganAt).toBeLessThan(5_000);
  });

  test("waits for requests that the page starts after its load event", async () => {
    await driver.run("navigate", { url: site.url("/busy.html") });
    const hasty = await driver.run("wait", { condition: { kind: "network_idle" }, timeout_ms: 300 });
    expect(hasty.problem).toMatchObject({
      detail: expect.stringMatching(
        /^the network did not become idle within the timeout: wait for .* \(on the page http/,
      ),
    });
    const { answer } = await driver.run("wait", { condition: { kind: "network_idle" } });
    expect(answer?.title).toBe("Quiet");
  });

  test("refuses an invalid selector and names its field", async () => {
    const { problem } = await driver.run("wait", { condition: { kind: "selector", selector: "a[" }, timeout_ms: 500 });
    expect(problem).toMatchObject({ slug: "validation-failed", detail: "condition.selector: is not a CSS selector" });
  });
});
