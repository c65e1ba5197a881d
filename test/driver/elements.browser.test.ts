import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { FixtureSite } from "../support/fixture-site.ts";
import type { HostileDriver } from "../support/hostile-runner.ts";
import { runtimes } from "../support/runtimes.ts";
import { workerDriver } from "../support/worker-driver.ts";
import { type DrivenSession, WorkerUnderTest } from "../support/worker-under-test.ts";

/** Timeout of actions that fail; allows for a busy machine to find the reason. */
const hasty = { timeout_ms: 1_000 };

let site: FixtureSite;
let worker: WorkerUnderTest;

beforeAll(async () => {
  site = await new FixtureSite().start();
  const [, port] = site.host.split(":");
  // Another site than 127.0.0.1, so that its frames have their own process.
  worker = await WorkerUnderTest.start([site.host, `localhost:${port}`]);
});

afterAll(async () => {
  await worker?.stop();
  await site?.stop();
});

describe.each(runtimes)("an element in %s", (runtime) => {
  let session: DrivenSession;
  let driver: HostileDriver;

  beforeAll(async () => {
    session = await worker.open({ runtime });
    driver = workerDriver(session);
  });
  afterAll(() => session?.destroy());
  beforeEach(async () => {
    await driver.run("navigate", { url: site.url("/elements.html") });
  });

  const act = (kind: string, action: object, more = {}) =>
    driver.run("interact", { action: { kind, ...action }, ...more });
  const tap = (selector: string, more = {}) => act("tap", { selector }, more);
  const waitFor = (condition: object, more = {}) => driver.run("wait", { condition, timeout_ms: 20_000, ...more });
  const snapshot = async () => (await session.capture({ kind: 2 })).data.toString();
  const onPage = () => ` (on the page ${site.url("/elements.html")})`;
  const inFrame = (selector: string) => ({ selector, frame: ["#other"] });

  test.each([
    ["at its current place when a script moves it", "#slides", "clicked slides"],
    ["that avoids the mouse, and no other one", "#dodges", "clicked dodges"],
    ["that a frame replaces under the mouse", "#gives-way", "clicked gives-way"],
    ["once although the page stops the propagation of presses", "#silenced", "silenced 1"],
    ["that is added later", "#late", "clicked late"],
    ["below the fold of a box", "#deep-in-box", "clicked deep-in-box"],
    ["in a list that recreates its rows on scroll", "#row-11", "clicked row-11"],
    ["through its slotted content", "#inside", "clicked inside"],
    ["in a form whose elements shadow its members", "#in-form", "clicked in-form"],
    [
      "by a selector that crosses into a shadow root",
      "section.twins > #host form [name=closest] ~ button",
      "clicked in-form",
    ],
    ["through the label that replaces it", "#hidden-box", "clicked hidden-box"],
  ])("is tapped %s", async (_name, selector, title) => {
    const { answer, problem } = await tap(selector);
    expect(problem).toBeUndefined();
    expect(answer?.title).toBe(title);
  });

  test("blocks a press that would hit another element", async () => {
    await tap("#dodges");
    const received = ["pointerdown", "mousedown", "mouseup", "click"].map((type) => `${type} dodges`).join(", ");
    expect(await snapshot()).toContain(`<p id="heard">${received}</p>`);
  });

  test("reports the element that covers it, and performs no action", async () => {
    const { problem } = await tap("#under", hasty);
    expect(problem).toMatchObject({
      slug: "session-timeout",
      detail: `the element \`#under\` is covered by <div id="veil" class="thin veil">${onPage()}`,
    });
    expect(await snapshot()).toContain('<p id="heard"></p>');
  });

  test.each([
    ["not.there", "no element matches `not.there`"],
    [".twins[hidden]", "the element `.twins[hidden]` is not visible"],
    ["#after", "the element `#after` is disabled"],
  ])("reports why %s is not tapped", async (selector, detail) => {
    expect((await tap(selector, hasty)).problem).toMatchObject({ slug: "session-timeout", detail: detail + onPage() });
  });

  test("lists its options when a chosen one is missing", async () => {
    const { problem } = await act("select", { selector: "#few", values: ["none"] }, hasty);
    const detail =
      'the element `#few` does not have all of these options. It has "a" ("First"), "Second", "c" disabled';
    expect(problem).toMatchObject({ slug: "session-timeout", detail: detail + onPage() });
  });

  test("is tapped in its middle within a frame of another site, wherever that is scrolled to", async () => {
    expect((await act("tap", inFrame("#in-other"))).problem).toBeUndefined();
    const { problem } = await waitFor({ kind: "text", text: "hit at 50,15", frame: ["#other"] });
    expect(problem).toBeUndefined();
  });

  test("is selected, scrolled and awaited within a frame of another site", async () => {
    expect((await act("scroll", { ...inFrame("html"), dy: 500 })).problem).toBeUndefined();
    expect((await waitFor({ kind: "selector", ...inFrame("#in-other") })).problem).toBeUndefined();
    expect((await waitFor({ kind: "selector", ...inFrame("#nowhere"), state: 2 })).problem).toBeUndefined();
    const { problem } = await waitFor({ kind: "text", text: "in no frame", frame: ["#other"] }, hasty);
    expect(problem).toMatchObject({ detail: `the text did not appear within the timeout${onPage()}` });
  });

  test("is hovered over, as is a point", async () => {
    await act("hover", { selector: "#fancy" });
    expect(await snapshot()).toMatch(/pointer [\d.,]+ fancy</);
    await act("hover", { x: 3, y: 590 });
    expect(await snapshot()).toContain("pointer 3,590 ");
  });

  test("refuses a point outside of the viewport for a tap and a hover", async () => {
    for (const kind of ["tap", "hover"]) {
      expect((await act(kind, { x: 1_280, y: 5 })).problem, kind).toMatchObject({
        slug: "validation-failed",
        detail: "action.x: is outside of the viewport of 1280x720",
      });
      const below = await act(kind, { x: 5, y: 720 });
      expect(below.problem, kind).toMatchObject({ detail: expect.stringContaining("action.y") });
    }
  });

  test("is refused with our own error text if its selector is invalid or the element unfit", async () => {
    await waitFor({ kind: "selector", selector: "#late" });
    for (const [kind, action, detail] of [
      ["tap", { selector: "button:has-text('late')" }, "action.selector: is not a CSS selector"],
      ["hover", { selector: "button:visible" }, "action.selector: is not a CSS selector"],
      ["tap", { selector: "#list >> button" }, "action.selector: is not a CSS selector"],
      ["tap", { selector: "a", frame: ["#late-place"] }, "action.frame[0]: is not a frame"],
      ["select", { selector: "#late", values: ["a"] }, "action.selector: is not a <select>"],
    ] as const) {
      const { problem } = await act(kind, action);
      expect(problem, `${kind} ${action.selector}`).toMatchObject({ slug: "validation-failed", detail });
    }
  });

  test.each([
    ["an element", { kind: "selector", selector: "#attached", state: 3 }],
    ["a text", { kind: "text", text: "thank you, ada" }],
  ])("%s is awaited in the new document when the page navigates meanwhile", async (_name, condition) => {
    await tap("#leaves");
    const { answer, problem } = await waitFor(condition);
    expect(problem).toBeUndefined();
    expect(answer?.title).toBe("Wait");
  });
});
