import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { FixtureSite } from "../support/fixture-site.ts";
import type { HostileDriver } from "../support/hostile-runner.ts";
import { runtimes } from "../support/runtimes.ts";
import { workerDriver } from "../support/worker-driver.ts";
import { type DrivenSession, WorkerUnderTest } from "../support/worker-under-test.ts";

/** For what is to time out: a busy machine takes its time to see why. */
const hasty = { timeout_ms: 1_000 };

let site: FixtureSite;
let worker: WorkerUnderTest;

beforeAll(async () => {
  site = await new FixtureSite().start();
  const [, port] = site.host.split(":");
  // Another site than 127.0.0.1: its frames have a process of their own.
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
    ["that a script moves, where it is", "#slides", "clicked slides"],
    ["that leaves when the mouse comes, and nothing in its place", "#dodges", "clicked dodges"],
    ["that gives way to a frame when the mouse comes", "#gives-way", "clicked gives-way"],
    ["once, though the page keeps the press from all others", "#silenced", "silenced 1"],
    ["that is made later", "#late", "clicked late"],
    ["below the fold of a box", "#deep-in-box", "clicked deep-in-box"],
    ["of a list that makes its rows anew when it is scrolled", "#row-11", "clicked row-11"],
    ["that holds what is slotted into it", "#inside", "clicked inside"],
    ["in a form that names its members after elements", "#in-form", "clicked in-form"],
    [
      "by a selector that reaches from outside into a shadow root",
      "section.twins > #host form [name=closest] ~ button",
      "clicked in-form",
    ],
    ["that is drawn by something else in its label", "#hidden-box", "clicked hidden-box"],
  ])("is tapped %s", async (_name, selector, title) => {
    const { answer, problem } = await tap(selector);
    expect(problem).toBeUndefined();
    expect(answer?.title).toBe(title);
  });

  test("is tapped alone: of a press that would hit another the page hears nothing", async () => {
    await tap("#dodges");
    const heard = ["pointerdown", "mousedown", "mouseup", "click"].map((type) => `${type} dodges`).join(", ");
    expect(await snapshot()).toContain(`<p id="heard">${heard}</p>`);
  });

  test("says what covers it, and that nothing was done", async () => {
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
  ])("%s is not tapped, and why is said", async (selector, detail) => {
    expect((await tap(selector, hasty)).problem).toMatchObject({ slug: "session-timeout", detail: detail + onPage() });
  });

  test("that lacks a chosen option is named with the options that it has", async () => {
    const { problem } = await act("select", { selector: "#few", values: ["none"] }, hasty);
    const detail =
      'the element `#few` does not have all of these options. It has "a" ("First"), "Second", "c" disabled';
    expect(problem).toMatchObject({ slug: "session-timeout", detail: detail + onPage() });
  });

  test("in a frame of another site is tapped in its middle, wherever it is scrolled to", async () => {
    expect((await act("tap", inFrame("#in-other"))).problem).toBeUndefined();
    const { problem } = await waitFor({ kind: "text", text: "hit at 50,15", frame: ["#other"] });
    expect(problem).toBeUndefined();
  });

  test("in a frame of another site is chosen, scrolled and waited for", async () => {
    expect((await act("scroll", { ...inFrame("html"), dy: 500 })).problem).toBeUndefined();
    expect((await waitFor({ kind: "selector", ...inFrame("#in-other") })).problem).toBeUndefined();
    expect((await waitFor({ kind: "selector", ...inFrame("#nowhere"), state: 2 })).problem).toBeUndefined();
    const { problem } = await waitFor({ kind: "text", text: "in no frame", frame: ["#other"] }, hasty);
    expect(problem).toMatchObject({ detail: `the text did not appear within the timeout${onPage()}` });
  });

  test("is hovered over, and so is a point", async () => {
    await act("hover", { selector: "#fancy" });
    expect(await snapshot()).toMatch(/pointer [\d.,]+ fancy</);
    await act("hover", { x: 3, y: 590 });
    expect(await snapshot()).toContain("pointer 3,590 ");
  });

  test.each(["tap", "hover"])("a point outside of the viewport is refused by %s", async (kind) => {
    expect((await act(kind, { x: 1_280, y: 5 })).problem).toMatchObject({
      slug: "validation-failed",
      detail: "action.x: is outside of the viewport of 1280x720",
    });
    expect((await act(kind, { x: 5, y: 720 })).problem).toMatchObject({ detail: expect.stringContaining("action.y") });
  });

  test.each([
    ["tap", { selector: "button:has-text('late')" }, "action.selector: is not a CSS selector"],
    ["hover", { selector: "button:visible" }, "action.selector: is not a CSS selector"],
    ["tap", { selector: "#list >> button" }, "action.selector: is not a CSS selector"],
    ["tap", { selector: "a", frame: ["#late-place"] }, "action.frame[0]: is not a frame"],
    ["select", { selector: "#late", values: ["a"] }, "action.selector: is not a <select>"],
  ])("%s of %o is refused in words of our own", async (kind, action, detail) => {
    await waitFor({ kind: "selector", selector: "#late" });
    expect((await act(kind, action)).problem).toMatchObject({ slug: "validation-failed", detail });
  });

  test.each([
    ["an element", { kind: "selector", selector: "#attached", state: 3 }],
    ["a text", { kind: "text", text: "thank you, ada" }],
  ])("%s is waited for in the document to which the page goes meanwhile", async (_name, condition) => {
    await tap("#leaves");
    const { answer, problem } = await waitFor(condition);
    expect(problem).toBeUndefined();
    expect(answer?.title).toBe("Wait");
  });
});
