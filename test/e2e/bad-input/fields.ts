import { expect, test } from "vitest";
import type { FieldFault } from "../../../src/platform/errors.ts";
import { expectProblem, send } from "../support/problem.ts";
import type { GetScene } from "./scene.ts";

type Case = readonly [body: unknown, detail: string, slug?: "bad-request" | "validation-failed" | "not-found"];

const seventeen = Object.fromEntries(Array.from({ length: 17 }, (_, index) => [`label-${index}`, "x"]));
const long = "x".repeat(8200);
const tap = (fields: object): object => ({ action: { kind: "tap", ...fields } });

const cases: Readonly<Record<string, readonly Case[]>> = {
  "": [
    ["5", "body: must be an object"],
    ["[]", "body: must be an object"],
    ['{"labels": {"a": "x", "\\u0061": "y"}}', "labels.a: is given twice"],
    ['{"archetype": "\\"}", "archetype": "pixel-7"}', "archetype: is given twice"],
    [{ colour: "blue" }, "colour: is not a known field"],
    [{ constructor: {} }, "constructor: is not a known field"],
    ['{"__proto__": {"archetype": "pixel-7"}}', "__proto__: is not a known field"],
    [{ archetype: 5 }, "archetype: must be a string"],
    [{ archetype: "" }, "archetype: must have 1 to 64 characters"],
    [{ archetype: "pixl-7" }, "archetype: is not an archetype; close matches: pixel-7"],
    [{ archetype: "zzzzzzzzzzzzzzzz" }, "archetype: is not an archetype"],
    [{ runtime: "netscape" }, "runtime: must be one of headless-shell, chromium, firefox, webkit"],
    [{ timeout_seconds: 59 }, "timeout_seconds: must be a whole number from 60 to 86400"],
    [{ timeout_seconds: 86_401 }, "timeout_seconds: "],
    [{ timeout_seconds: "60" }, "timeout_seconds: must be a whole number"],
    [{ timeout_seconds: 60.5 }, "timeout_seconds: must be a whole number"],
    [{ timeout_seconds: -1 }, "timeout_seconds: must be a whole number from 60 to 86400"],
    [{ idle_timeout_seconds: 9 }, "idle_timeout_seconds: "],
    [{ locale: "!!" }, "locale: must look like en-US"],
    [{ timezone: "Mars/Base" }, "timezone: is not an IANA time zone"],
    [{ viewport: [] }, "viewport: must be an object"],
    [{ viewport: { width: 99, height: 100 } }, "viewport.width: "],
    [{ viewport: { width: 100 } }, "viewport.height: "],
    [{ viewport: { width: 100, height: 100, depth: 3 } }, "viewport.depth: is not a known field"],
    [{ archetype: "pixel-7", viewport: { width: 100, height: 100 } }, "viewport: can be set for desktop"],
    [{ labels: { "": "x" } }, "labels: its key must have 1 to 64 characters"],
    [{ labels: { a: "x".repeat(257) } }, "labels.a: must have at most 256 characters"],
    [{ labels: { a: 5 } }, "labels.a: must be a string"],
    [{ labels: { a: "\0" } }, "labels.a: must not contain U+0000"],
    [{ labels: seventeen }, "labels: must have at most 16 entries"],
    ['{"labels": {"__proto__": "x"}}', "labels.__proto__: is not a permitted key"],
    [{ labels: { a: "\ud800" } }, "labels.a: must be well-formed Unicode"],
    [{ on_challenge: "explode" }, "on_challenge: must be one of pause, report"],
    [{ on_challenge: 1 }, "on_challenge: must be one of pause, report"],
    [{ proxy: {} }, "proxy.server: is required"],
    [{ proxy: { server: "nowhere" } }, "proxy.server: must be http://", "bad-request"],
    [{ profile_id: "prf_x" }, "no profile has this id", "not-found"],
  ],
  "/{id}/navigate": [
    [{}, "url: is required"],
    [{ url: null }, "url: is required"],
    [{ url: 5 }, "url: must be a string"],
    [{ url: "nowhere" }, "url: is not an absolute URL", "bad-request"],
    [{ url: "http://" }, "url: is not an absolute URL", "bad-request"],
    [{ url: "file:///etc/passwd" }, "url: must be http, https or about:blank", "bad-request"],
    [{ url: "javascript:alert(1)" }, "url: must be http, https or about:blank", "bad-request"],
    [{ url: "about:config" }, "url: must be http, https or about:blank", "bad-request"],
    [{ url: `http://a/${long}` }, "url: must have 1 to 8192 characters"],
    [{ url: "about:blank", wait_until: "never" }, "wait_until: must be one of"],
    [{ url: "about:blank", timeout_ms: 0 }, "timeout_ms: "],
    [{ url: "about:blank", timeout_ms: 120_001 }, "timeout_ms: "],
    [{ url: "about:blank", id: "ses_x" }, "id: is given by the path"],
    [{ url: "about:blank", page_id: "page_99" }, "the session has no page page_99", "not-found"],
  ],
  "/{id}/interact": [
    [{}, "action: is required"],
    [{ action: "tap" }, "action: must be an object with a kind"],
    [{ action: {} }, "action.kind: is required"],
    [{ action: { kind: null } }, "action.kind: is required"],
    [{ action: { kind: "dance" } }, "action.kind: must be one of tap"],
    [{ action: { kind: "__proto__" } }, "action.kind: must be one of tap"],
    [tap({}), "action: give either selector, or ref, or x and y"],
    [tap({ selector: "a", x: 1, y: 1 }), "action: give either selector, or ref, or x and y"],
    [tap({ x: -1, y: 1 }), "action.x: must be a number from 0 to 100000"],
    [tap({ x: 1e300, y: 1 }), "action.x: "],
    [tap({ selector: "a", count: 4 }), "action.count: "],
    [tap({ selector: "a", button: "side" }), "action.button: must be one of left, right, middle"],
    [tap({ selector: "a", frame: "b" }), "action.frame: must be an array"],
    [tap({ selector: "a", frame: [null] }), "action.frame[0]: must not be null"],
    [tap({ x: 1, y: 1, frame: ["a"] }), "action.frame: needs a selector"],
    [tap({ x: 99_999, y: 1 }), "action.x: is outside of the viewport of 1280x720"],
    [tap({ selector: "a[" }), "action.selector: is not a CSS selector"],
    [tap({ selector: "a:has-text('b')" }), "action.selector: is not a CSS selector"],
    [tap({ selector: "a >> b" }), "action.selector: is not a CSS selector"],
    [{ action: { kind: "hover" } }, "action: give either selector, or ref, or x and y"],
    [{ action: { kind: "hover", x: 1, y: 99_999 } }, "action.y: is outside of the viewport of 1280x720"],
    [{ action: { kind: "scroll" } }, "action: give dx or dy"],
    [{ action: { kind: "scroll", dy: 1, frame: ["a"] } }, "action.frame: needs a selector"],
    [{ action: { kind: "select", selector: "a" } }, "action.values: give either values, or labels"],
    [{ action: { kind: "select", selector: "a", values: ["b"], labels: ["B"] } }, "action.values: give either"],
    [{ action: { kind: "fill", text: "x" } }, "action: give either selector, or ref"],
    [{ action: { kind: "check", selector: "a", ref: "s1e1" } }, "action: give either selector, or ref"],
    [{ action: { kind: "uncheck", ref: "s1e1", frame: ["a"] } }, "action.frame: needs a selector"],
    [{ action: { kind: "key", key: "a", selector: "a", ref: "s1e1" } }, "action: give either selector, or ref"],
    [tap({ selector: "text=Go" }), "action.selector: is not a CSS selector"],
    [tap({ selector: "//a" }), "action.selector: is not a CSS selector"],
    [tap({ selector: "a", frame: ["###"] }), "action.frame"],
    [{ action: { kind: "type", selector: "a", text: ["x"] } }, "action.text: must be a string"],
    [{ action: { kind: "type", selector: "a" } }, "action: give text, or clear"],
    [{ action: { kind: "type", text: "x", frame: ["a"] } }, "action.frame: needs a selector"],
    [
      { action: { kind: "type", text: "x", insert: true, delay_ms: 5 } },
      "action: delay_ms cannot be combined with insert",
    ],
    [
      { action: { kind: "key", key: "NoSuchKey" } },
      "action.key: must be a key name such as `Enter`, or one character without modifiers",
    ],
    [{ action: { kind: "key", key: "a", modifiers: ["Hyper"] } }, "action.modifiers[0]: "],
    [{ action: { kind: "drag", from: { x: 1, y: 1 } } }, "action.to: is required"],
    [
      { action: { kind: "drag", from: { x: 1, y: 1, frame: ["a"] }, to: { x: 1, y: 1 } } },
      "action.from.frame: needs a selector",
    ],
    [{ action: { kind: "swipe", from: { x: 1 }, to: { x: 1, y: 1 } } }, "action.from: give either"],
  ],
  "/{id}/wait": [
    [{}, "condition: is required"],
    [{ condition: { kind: "miracle" } }, "condition.kind: must be one of selector"],
    [{ condition: { kind: "selector" } }, "condition.selector: is required"],
    [{ condition: { kind: "selector", selector: ":nope(" } }, "condition.selector: is not a CSS selector"],
    [{ condition: { kind: "selector", selector: "a", state: "gone" } }, "condition.state: must be one of"],
    [{ condition: { kind: "text", text: "a", frame: ["["] } }, "condition.frame[0]: is not a CSS selector"],
    [{ condition: { kind: "url" } }, "condition.pattern: is required"],
    [{ condition: { kind: "network_idle", for: 1 } }, "condition.for: is not a known field"],
    [{ condition: { kind: "load_state" }, timeout_ms: "1" }, "timeout_ms: must be a whole number"],
  ],
  "/{id}/capture": [
    [{}, "kind: is required"],
    [{ kind: "video" }, "kind: must be one of screenshot, dom_snapshot, pdf"],
    [{ kind: "screenshot", format: "mhtml" }, "format: must be png, jpeg or webp for a screenshot"],
    [{ kind: "dom_snapshot", format: "png" }, "format: must be png, jpeg or webp for a screenshot, html or mhtml for"],
    [{ kind: "pdf", format: "png" }, "format: must be png, "],
    [{ kind: "screenshot", scale: "twice" }, "scale: must be one of device, css"],
    [{ kind: "screenshot", timeout_ms: 60_001 }, "timeout_ms: must be a whole number from 1 to 60000"],
    [{ kind: "screenshot", quality: 0 }, "quality: must be a whole number from 1 to 100"],
    [{ kind: "screenshot", selector: "###" }, "selector: is not a CSS selector"],
    [{ kind: "screenshot", full_page: "yes" }, "full_page: must be true or false"],
    [{ kind: "pdf", paper: "a0" }, "paper: must be one of a3, a4, a5, letter, legal, tabloid"],
  ],
};

/** Bodies that a schema or a page refuses. */
export function fieldTests(scene: GetScene): void {
  const all = Object.entries(cases).flatMap(([path, list]) =>
    list.map(([body, detail, slug = "validation-failed"]) => ({ path, body, detail, slug })),
  );
  test.each(all)("POST $path with $body is refused with $slug: $detail", async ({ path, body, detail, slug }) => {
    const { service, sessionId } = scene();
    const answer = await send(service, { path: `/v1/sessions${path.replace("{id}", sessionId)}`, body });
    expectProblem(answer, { status: slug === "not-found" ? 404 : 400, slug, detail });
    if (slug !== "not-found") {
      const { errors, detail: first } = JSON.parse(answer.text);
      expect(`${errors[0].field}: ${errors[0].message}`).toBe(first);
    }
  });

  test("a response lists all faults of a request", async () => {
    const body = {
      archetype: 1,
      runtime: "netscape",
      colour: 3,
      labels: seventeen,
      proxy: { servr: "http://a:1" },
      viewport: { width: 99, height: "tall" },
      timeout_seconds: 1,
    };
    const answer = await send(scene().service, { path: "/v1/sessions", body });
    const faults = JSON.parse(answer.text).errors.map(({ field, message }: FieldFault) => `${field}: ${message}`);
    expect(new Set(faults)).toEqual(
      new Set([
        "archetype: must be a string",
        "runtime: must be one of headless-shell, chromium, firefox, webkit",
        "colour: is not a known field",
        "labels: must have at most 16 entries",
        "proxy.servr: is not a known field: did you mean `server`?",
        "proxy.server: is required",
        "viewport.width: must be a whole number from 100 to 4096",
        "viewport.height: must be a whole number from 100 to 4096",
        "timeout_seconds: must be a whole number from 60 to 86400",
      ]),
    );
    expect(faults).toHaveLength(9);
  });

  test("a response lists all options that do not apply to a capture", async () => {
    const { service, sessionId } = scene();
    const faultsOf = async (body: object) => {
      const answer = await send(service, { path: `/v1/sessions/${sessionId}/capture`, body });
      expect(answer.status).toBe(400);
      return JSON.parse(answer.text).errors.map(({ field, message }: FieldFault) => `${field}: ${message}`);
    };
    expect(
      await faultsOf({
        kind: "screenshot",
        frame: ["a"],
        quality: 9,
        paper: "a3",
        landscape: true,
        print_background: true,
      }),
    ).toEqual([
      "frame: applies only together with selector",
      "quality: applies only to a jpeg or webp screenshot",
      "paper: applies only to a PDF",
      "landscape: applies only to a PDF",
      "print_background: applies only to a PDF",
    ]);
    expect(await faultsOf({ kind: "pdf", full_page: true, selector: "a", quality: 9, scale: "css" })).toEqual([
      "full_page: applies only to a screenshot without selector",
      "selector: applies only to a screenshot",
      "quality: applies only to a jpeg or webp screenshot",
      "scale: applies only to a screenshot",
    ]);
    expect(await faultsOf({ kind: "screenshot", full_page: true, selector: "a" })).toEqual([
      "full_page: applies only to a screenshot without selector",
    ]);
  });

  test.each([
    ["capture", { kind: "pdf", quality: 80, paper: "a4", scale: "device", timeout_ms: 60_000 }],
    ["capture", { kind: "dom_snapshot", quality: 80, paper: "a4", scale: "device" }],
    ["capture", { kind: "screenshot", format: "png", quality: 80, paper: "a4" }],
    ["interact", { action: { kind: "type", text: "x", insert: true, delay_ms: 0 } }],
  ])("%s accepts the default value of an option that does not apply", async (path, body) => {
    const { service, sessionId } = scene();
    const answer = await send(service, { path: `/v1/sessions/${sessionId}/${path}`, body });
    expect([answer.status, answer.text]).toEqual([200, expect.any(String)]);
  });

  test("a response lists the first 50 of 5,000 faults", async () => {
    const body = Object.fromEntries(Array.from({ length: 5_000 }, (_, index) => [`f${index}`, 0]));
    const answer = await send(scene().service, { path: "/v1/sessions", body });
    expect(JSON.parse(answer.text).errors).toHaveLength(50);
  });

  test("a body with a byte order mark is accepted", async () => {
    const { service, sessionId } = scene();
    const body = '\ufeff{"url":"about:blank"}';
    const answer = await send(service, { path: `/v1/sessions/${sessionId}/navigate`, body });
    expect(answer.status).toBe(200);
  });

  test("a session returns canonical device names, and no time zone unless one was requested", async () => {
    const { service } = scene();
    const post = async (body: object) => JSON.parse((await send(service, { path: "/v1/sessions", body })).text);
    const phone = await post({ archetype: "Pixel 7", timezone: "europe/vienna" });
    expect(phone).toMatchObject({ status: "live", archetype: "pixel-7", timezone: "Europe/Vienna" });
    const plain = await post({});
    expect(plain).toMatchObject({ status: "live", timezone: null });
    for (const { id } of [phone, plain]) await send(service, { method: "DELETE", path: `/v1/sessions/${id}` });
  });

  test("the archetypes can be listed without a key", async () => {
    const { service } = scene();
    const answer = await send(service, { path: "/v1/archetypes", headers: { authorization: null } });
    const { data } = JSON.parse(answer.text);
    expect(data.length).toBeGreaterThan(100);
    expect(data.find(({ name }: { name: string }) => name === "pixel-7")).toEqual({
      name: "pixel-7",
      viewport: { width: 412, height: expect.any(Number), device_scale_factor: 2.625 },
      touch: true,
      user_agent: expect.stringContaining("Pixel 7"),
    });
  });

  test("a runtime that is not installed is refused with driver-not-integrated", async () => {
    const answer = await send(scene().service, { path: "/v1/sessions", body: { runtime: "webkit" } });
    expectProblem(answer, { status: 503, slug: "driver-not-integrated" });
  });

  test.each([
    ["/v1/sessions?limit=-1", "limit: must be a whole number from 1 to 100"],
    ["/v1/sessions?limit=0", "limit: must be a whole number from 1 to 100"],
    ["/v1/sessions?limit=101", "limit: "],
    ["/v1/sessions?limit=", "limit: must be a whole number"],
    ["/v1/sessions?limit=ten", "limit: must be a whole number"],
    ["/v1/sessions?limit=0x10", "limit: must be a whole number"],
    ["/v1/sessions?status=happy", "status: must be one of provisioning"],
    ["/v1/sessions?cursor=nonsense", "cursor: is not a next_cursor of this list"],
    ["/v1/sessions?cursor=%00", "cursor: must not contain U+0000"],
    ["/v1/sessions?colour=blue", "colour: is not a known parameter"],
    ["/v1/sessions?__proto__=1", "__proto__: is not a known parameter"],
    ["/v1/sessions/{id}?x=1", "x: is not a known parameter"],
    ["/v1/sessions/{id}/state?x=1", "x: is not a known parameter"],
    ["/v1/sessions/{id}/events?after_event_id=%00", "after_event_id: must not contain U+0000"],
  ])("GET %s is refused with validation-failed: %s", async (path, detail) => {
    const { service, sessionId } = scene();
    expectProblem(await send(service, { path: path.replace("{id}", sessionId) }), {
      status: 400,
      slug: "validation-failed",
      detail,
    });
  });
}
