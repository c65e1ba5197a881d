import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
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

describe.each(runtimes)("an interact with a field in %s", (runtime) => {
  let session: DrivenSession;
  let driver: HostileDriver;

  beforeAll(async () => {
    session = await worker.open({ runtime });
    driver = workerDriver(session);
  });
  afterAll(() => session?.destroy());
  beforeEach(async () => {
    await driver.run("navigate", { url: site.url("/fields.html") });
  });

  const act = (kind: string, selector: string, more = {}, timeout_ms = 5_000): Promise<Outcome> =>
    driver.run("interact", { action: { kind, selector, ...more }, timeout_ms });
  const snapshot = async () => (await session.capture({ kind: 2 })).data.toString();
  const stateOf = async (line: RegExp) => (await session.observe()).snapshot.match(line)?.[0];

  test.each([
    ["an input", "#name", "Eve\tO", 'id="name" value="Eve\tO"'],
    ["the field of a label", "#name-label", "Eve", 'id="name" value="Eve"'],
    ["a number", "#number", "-2.5", 'id="number" type="number" value="-2.5"'],
    ["a textarea", "#notes", "one\r\n\ttwo", ">\none\n\ttwo</textarea>"],
    ["a field in a shadow root", "#inner", "new", 'id="inner" value="new"'],
    ["nothing into an input", "#name", "", 'id="name" value=""'],
  ])("fills %s", async (_name, selector, text, html) => {
    const { answer, problem } = await act("fill", selector, { text });
    expect(problem).toBeUndefined();
    expect(await snapshot()).toContain(html);
    expect(answer?.title).toMatch(/input (?:name|number|notes|host)$|key \S+ \S+$/);
    expect(answer?.title).not.toMatch(/Enter|Tab|submit/);
  });

  test("fills an editable element with several lines", async () => {
    const { answer, problem } = await act("fill", "#editor", { text: "one\ntwo" });
    expect(problem).toBeUndefined();
    expect(answer?.title).not.toContain("Enter");
    const [, editor = ""] = /id="editor" contenteditable="">(.*?)\n?<label/s.exec(await snapshot()) ?? [];
    expect(editor.replace(/<[^>]*>/g, "|")).toMatch(/one\|+two/);
    expect(editor).not.toContain("old");
  });

  test.each([
    ["date", "2026-11-22"],
    ["time", "12:30"],
    ["color", "#ff8800"],
    ["range", "70"],
  ])("fills a %s with one input and one change event", async (type, text) => {
    const { answer } = await act("fill", `#${type}`, { text });
    expect(answer?.title).toBe(`input ${type}, change ${type}`);
    expect(await snapshot()).toContain(`type="${type}" value="${text}"`);
  });

  test.each([
    ["a number that is none", "#number", "ten", /^action\.text: is not a valid value of an input of type number/],
    ["a date that is none", "#date", "tomorrow", /^action\.text: is not a valid value of an input of type date/],
    ["a checkbox", "#news", "yes", /^action\.selector: checkbox does not accept text/],
  ])("refuses to fill %s", async (_name, selector, text, detail) => {
    const { problem } = await act("fill", selector, { text });
    expect(problem).toMatchObject({ slug: "validation-failed", detail: expect.stringMatching(detail) });
  });

  test.each([
    ["checks", "check", "#terms", /checkbox "Terms" ref=\S+ checked/],
    ["checks by its label", "check", "#terms-label", /checkbox "Terms" ref=\S+ checked/],
    ["unchecks", "uncheck", "#news", /checkbox \(field: news\) ref=\S+( focused)?$/m],
    ["keeps", "check", "#news", /checkbox \(field: news\) ref=\S+ checked/],
    ["checks an indeterminate", "check", "#mixed", undefined],
    ["unchecks an indeterminate", "uncheck", "#mixed", undefined],
    ["checks by a slow script", "check", "#switch", /switch "Airplane mode" ref=\S+ checked/],
    ["checks by a script with three states", "check", "#tristate", /checkbox "All" ref=\S+ checked/],
    ["unchecks by a script with three states", "uncheck", "#tristate", /checkbox "All" ref=\S+( focused)?$/m],
    [
      "selects a radio button by",
      "check",
      "#red",
      /radio \(field: hue\) ref=\S+ checked.*\n.*radio \(field: hue\) ref=\S+( focused)?$/m,
    ],
  ])("%s a control: %s %s", async (_name, kind, selector, line) => {
    expect((await act(kind, selector)).problem).toBeUndefined();
    const html = await snapshot();
    if (line) expect(await stateOf(line)).toBeDefined();
    else expect(html.includes('id="mixed" type="checkbox" checked=""')).toBe(kind === "check");
    // A second call changes nothing.
    expect((await act(kind, selector)).problem).toBeUndefined();
    expect(await snapshot()).toBe(html);
  });

  test("checks by ref, and answers once the document that the tap opened is shown", async () => {
    const { snapshot: seen } = await session.observe();
    const [, leaves] = /checkbox \(field: leaves\) ref=(\S+)/.exec(seen) ?? [];
    const { answer, problem } = await driver.run("interact", { action: { kind: "check", ref: leaves } });
    expect(problem).toBeUndefined();
    expect(answer?.url).toBe(site.url("/wait.html"));
  });

  test.each([
    ["uncheck", "#blue", "validation-failed", /^action\.selector: is a radio button: check another one of its group/],
    ["check", "#plain", "validation-failed", /^action\.selector: is not a checkbox, radio button or switch/],
    ["check", "#stuck", "session-timeout", /`#stuck` stayed unchecked when it was tapped/],
  ])("refuses: %s %s", async (kind, selector, slug, detail) => {
    const { problem } = await act(kind, selector, {}, 1_500);
    expect(problem).toMatchObject({ slug, detail: expect.stringMatching(detail) });
  });

  test.each([
    ["a label", "#country", ["  Austria"], 'id="country"><option value="at">'],
    ["a label that appears later", "#late", ["Graz"], '<option selected="">Graz'],
  ])("selects by %s", async (_name, selector, labels, html) => {
    await driver.run("navigate", { url: site.url("/fields.html?late") });
    const { answer, problem } = await act("select", selector, { labels });
    expect(problem).toBeUndefined();
    expect(answer?.title).toMatch(/input \w+, change \w+$/);
    expect(await snapshot()).toContain(html);
  });

  test.each([
    ["does not exist", ["austria"], /does not have all of these options\. It has "at" \(Austria\)|"at" \("Austria"\)/],
    ["is disabled", ["Germany"], /disables some of these options.*disabled/],
  ])("lists the options if a label %s", async (_name, labels, detail) => {
    const { problem } = await act("select", "#country", { labels });
    expect(problem).toMatchObject({ slug: "validation-failed", detail: expect.stringMatching(detail) });
  });

  test("presses a key in the named element, and reports an element without focus", async () => {
    expect((await act("key", "#notes", { key: "End" })).answer?.title).toBe("key End notes");
    expect((await act("key", "#inner", { key: "x" })).answer?.title).toMatch(/^key End notes, key x host/);
    const { problem } = await act("key", "body", { key: "x" }, 300);
    expect(problem).toMatchObject({
      slug: "session-timeout",
      detail: expect.stringContaining("does not accept focus"),
    });
  });
});
