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

/** Drives typing.html in a session, and reads its events. */
class TypingPage {
  readonly #session: DrivenSession;
  readonly #driver: HostileDriver;

  constructor(session: DrivenSession) {
    this.#session = session;
    this.#driver = workerDriver(session);
  }

  async load(): Promise<void> {
    await this.#driver.run("navigate", { url: site.url("/typing.html") });
  }

  act(action: Record<string, unknown>, timeout_ms = 20_000): Promise<Outcome> {
    return this.#driver.run("interact", { action, timeout_ms });
  }

  type(selector: string, text: string, more = {}): Promise<Outcome> {
    return this.act({ kind: "type", selector, text, ...more });
  }

  key(key: string, ...modifiers: string[]): Promise<Outcome> {
    return this.act({ kind: "key", key, modifiers });
  }

  async html(): Promise<string> {
    const html = (await this.#session.capture({ kind: 2 })).data.toString();
    // HTML parsers skip the newline that a snapshot writes before the typed text.
    return html.replace('<textarea id="area">\n', '<textarea id="area">');
  }

  /** The page's event log. */
  async received(): Promise<string[]> {
    const [, log = ""] = /<pre id="log" hidden="">(.*?)\n?<\/pre>/s.exec(await this.html()) ?? [];
    return log.split("\n");
  }
}

/** Events of a key press. */
const stroke = (key: string, made = key) => [`keydown ${key}`, `input ${made}`, `keyup ${key}`];

/** Events of a key press that needs Shift. */
const shifted = (key: string) => ["keydown Shift", ...stroke(key), "keyup Shift"];

const areaWith = (text: string) => `<textarea id="area">${text}</textarea>`;

describe.each(runtimes)("a keyboard in %s", (runtime) => {
  let session: DrivenSession;
  let page: TypingPage;

  beforeAll(async () => {
    session = await worker.open({ runtime });
    page = new TypingPage(session);
  });
  afterAll(() => session?.destroy());
  beforeEach(() => page.load());

  test("types each character as a keydown, an input and a keyup", async () => {
    expect((await page.type("#next", "aB1! é漢👩‍👩‍👧z")).problem).toBeUndefined();
    expect(await page.received()).toEqual([
      ...stroke("a"),
      ...shifted("B"),
      ...stroke("1"),
      ...shifted("!"),
      ...stroke(" "),
      ...stroke("Process", "é"),
      ...stroke("Process", "漢"),
      ...stroke("Process", "👩‍👩‍👧"),
      ...stroke("z"),
    ]);
    expect(await page.html()).toContain('id="next" value="aB1! é漢👩‍👩‍👧z"');
  });

  test("types every character of the layout", async () => {
    const text = String.fromCharCode(...Array.from({ length: 95 }, (_, index) => 32 + index));
    expect((await page.type("#area", text, { clear: true })).problem).toBeUndefined();
    const escaped = text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;");
    expect(await page.html()).toContain(areaWith(escaped));
  });

  test("submits a form with a newline, and moves to the next field with a tab", async () => {
    expect((await page.type("#line", "Ada\n\tl")).problem).toBeUndefined();
    const received = await page.received();
    expect(received).toContain("submit Ada");
    expect(received.slice(-3)).toEqual(stroke("l"));
    expect(await page.html()).toContain('id="next" value="l"');
  });

  test("types lines", async () => {
    await page.type("#area", "one\r\ntwo\n", { clear: true });
    expect(await page.html()).toContain(areaWith("one\ntwo\n"));
  });

  test("keeps the order of a long text", async () => {
    const text = "The quick brown fox. ".repeat(20).trim();
    expect((await page.type("#next", text)).problem).toBeUndefined();
    expect(await page.html()).toContain(`id="next" value="${text}"`);
  });

  test("inserts a text at once, without keys", async () => {
    await page.type("#area", "all\nof it", { clear: true, insert: true });
    expect(await page.html()).toContain(areaWith("all\nof it"));
    const received = (await page.received()).filter((line) => line.startsWith("key"));
    expect(received).toEqual(["keydown Delete", "keyup Delete"]);
  });

  test("clears a field", async () => {
    expect((await page.type("#area", "", { clear: true })).problem).toBeUndefined();
    expect(await page.html()).toContain(areaWith(""));
  });

  test.each([
    ["#number", "6", 'value="156"'],
    ["#email", ".org", 'value="ada@example.com.org"'],
  ])("types after the existing text of %s", async (selector, text, value) => {
    await page.type(selector, text);
    expect(await page.html()).toContain(value);
  });

  test.each([
    ["#date", "2026-11-22", "2026-11-22"],
    ["#time", "13:45", "13:45"],
    ["#month", "2026-11", "2026-11"],
    ["#week", "2026-W47", "2026-W47"],
    ["#local", "2026-11-22 13:45", "2026-11-22T13:45"],
    ["#color", "#FF8800", "#ff8800"],
    ["#range", "7", "7"],
  ])("sets the value of %s and notifies the page", async (selector, text, value) => {
    expect((await page.type(selector, text)).problem).toBeUndefined();
    expect(await page.received()).toEqual([`input ${value}`, `change ${value}`]);
  });

  test("sets a value as a person does, not as a script", async () => {
    await page.type("#tracked", "2026-11-22");
    expect(await page.received()).toContain("changed by a person");
  });

  test("refuses an invalid value, of which the page is not notified, and a text for a control without text", async () => {
    for (const [selector, text, type] of [
      ["#date", "22.11.2026", "date"],
      ["#time", "25:00", "time"],
      ["#color", "orange", "color"],
      ["#range", "11", "range"],
    ] as const) {
      const { problem } = await page.type(selector, text);
      const detail = `action.text: is not a valid value of an input of type ${type}`;
      expect(problem, selector).toMatchObject({ slug: "validation-failed", detail });
    }
    expect(await page.received()).toEqual([""]);
    for (const [selector, type] of [
      ["#check", "checkbox"],
      ["#radio", "radio"],
      ["#file", "file"],
      ["#submit", "submit"],
      ["#button", "button"],
      ["#select", "select"],
    ] as const) {
      const { problem } = await page.type(selector, "x");
      const detail = `action.selector: ${type} does not accept text`;
      expect(problem, selector).toMatchObject({ slug: "validation-failed", detail });
    }
  });

  test("presses no key after the timeout, however slow the page is", async () => {
    const typed = page.act({ kind: "type", selector: "#slow", text: "x".repeat(100), delay_ms: 1 }, 2_000);
    const { problem } = await typed;
    const downs = async () => (await page.received()).filter((line) => line === "keydown x").length;
    const inTime = await downs();
    expect(problem).toMatchObject({
      slug: "session-timeout",
      detail: expect.stringMatching(
        `^only the first ${inTime} characters? could be typed in time: .* \\(on the page http`,
      ),
    });
    // Earlier keys arrive before these.
    await page.type("#next", "after");
    await page.key("Escape");
    expect(await downs()).toBe(inTime);
    expect(await page.html()).toContain('id="next" value="after"');
  });

  test("may close the page with its last key only", async () => {
    const leave = async (text: string) => {
      await workerDriver(session).run("navigate", { url: site.url("/popups.html") });
      await page.act({ kind: "tap", selector: "#open-self" });
      await expect.poll(async () => (await session.state()).pages.length).toBe(2);
      const outcome = await page.type("#close-by-key", text);
      await expect.poll(async () => (await session.state()).pages.length).toBe(1);
      return outcome;
    };
    expect((await leave("bye\n")).problem).toBeUndefined();
    const cut = await leave(`bye\n${"x".repeat(2_000)}`);
    expect(cut.problem).toMatchObject({ slug: "driver-error", extensions: { target_closed: true } });
  });

  test("selects all, copies, pastes and undoes", async () => {
    await page.act({ kind: "tap", selector: "#area" });
    for (const key of ["a", "c"]) await page.key(key, "Control");
    await page.key("End");
    await page.key("v", "Control");
    expect(await page.html()).toContain(areaWith("oldold"));
    await page.key("z", "Control");
    expect(await page.html()).toContain(areaWith("old"));
  });

  test("reports each key to the page", async () => {
    // Two keys in succession have different titles, so that no key passes by the title of the one before.
    for (const [key, told] of [
      ["Enter", "Enter,Enter,13,0"],
      ["NumpadEnter", "Enter,NumpadEnter,13,3"],
      ["ArrowDown", "ArrowDown,ArrowDown,40,0"],
      ["F5", "F5,F5,116,0"],
      ["Shift", "Shift,ShiftLeft,16,1"],
      ["a", "a,KeyA,65,0"],
      ["%", "%,Digit5,53,0"],
      ["KeyA", "a,KeyA,65,0"],
    ] as const) {
      expect((await page.key(key)).answer, key).toMatchObject({ title: told });
    }
  });

  test("applies Shift to a key as a keyboard does", async () => {
    await page.act({ kind: "tap", selector: "#next" });
    await page.key("a", "Shift");
    await page.key("1", "Shift");
    await page.key("é");
    expect(await page.html()).toContain('id="next" value="A!é"');
  });

  test("drops dragged data and releases the mouse", async () => {
    const dragged = await page.act({ kind: "drag", from: { selector: "#card" }, to: { selector: "#drop" } });
    expect(dragged.problem).toBeUndefined();
    expect(await page.received()).toEqual([
      "mousedown card",
      "dragstart card",
      "drop drop",
      "got the card",
      "dragend card",
    ]);
    await page.act({ kind: "tap", selector: "#button" });
    expect((await page.received()).slice(-2)).toEqual(["mousedown button", "mouseup button"]);
  });

  test("drops nothing when the time is up during the drag", async () => {
    const swipe = { kind: "swipe", from: { selector: "#card" }, to: { selector: "#drop" }, duration_ms: 5_000 };
    expect((await page.act(swipe, 2_000)).problem).toMatchObject({ slug: "session-timeout" });
    await page.act({ kind: "tap", selector: "#button" });
    const received = await page.received();
    expect(received.slice(0, 2)).toEqual(["mousedown card", "dragstart card"]);
    expect(received.slice(-2)).toEqual(["mousedown button", "mouseup button"]);
    expect(received).not.toContain("drop drop");
  });

  test("releases the mouse when the target of a drag is missing", async () => {
    const drag = { kind: "drag", from: { selector: "#drop" }, to: { selector: "#nowhere" } };
    expect((await page.act(drag, 1_500)).problem).toMatchObject({ slug: "session-timeout" });
    await expect.poll(() => page.received()).toEqual(["mousedown drop", "mouseup drop"]);
  });
});

test("lifts the finger when a swipe's time is up", async () => {
  const session = await worker.open({ archetype: "pixel-7" });
  try {
    const page = new TypingPage(session);
    await page.load();
    const swipe = { kind: "swipe", from: { selector: "#drop" }, to: { selector: "#card" }, duration_ms: 5_000 };
    expect((await page.act(swipe, 1_500)).problem).toMatchObject({ slug: "session-timeout" });
    await expect.poll(() => page.received()).toEqual(["touchstart drop", "touchcancel drop"]);
  } finally {
    await session.destroy();
  }
});
