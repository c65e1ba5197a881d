import { expect, test } from "vitest";
import { expectProblem, send } from "../support/problem.ts";
import type { GetScene } from "./scene.ts";

type Case = readonly [body: unknown, detail: string, slug?: "bad-request" | "validation-failed" | "not-found"];

const seventeen = Object.fromEntries(Array.from({ length: 17 }, (_, index) => [`label-${index}`, "x"]));
const long = "x".repeat(8200);
const tap = (fields: object): object => ({ action: { kind: "tap", ...fields } });

const cases: Readonly<Record<string, readonly Case[]>> = {
  "": [
    [{ colour: "blue" }, "colour: is not a known field"],
    [{ constructor: {} }, "constructor: is not a known field"],
    ['{"__proto__": {"archetype": "pixel-7"}}', "__proto__: is not a known field"],
    [{ archetype: 5 }, "archetype: must be a string"],
    [{ archetype: "" }, "archetype: is required"],
    [{ archetype: "pixl-7" }, "archetype: is not an archetype; close matches: pixel-7"],
    [{ archetype: "zzzzzzzzzzzzzzzz" }, "archetype: is not an archetype"],
    [{ runtime: "netscape" }, "runtime: "],
    [{ timeout_seconds: 59 }, "timeout_seconds: "],
    [{ timeout_seconds: 86_401 }, "timeout_seconds: "],
    [{ timeout_seconds: "60" }, "timeout_seconds: must be a whole number"],
    [{ timeout_seconds: 60.5 }, "timeout_seconds: must be a whole number"],
    [{ timeout_seconds: -1 }, "timeout_seconds: must be a whole number"],
    [{ idle_timeout_seconds: 9 }, "idle_timeout_seconds: "],
    [{ locale: "!!" }, "locale: "],
    [{ timezone: "Mars/Base" }, "timezone: is not an IANA time zone"],
    [{ viewport: [] }, "viewport: must be an object"],
    [{ viewport: { width: 99, height: 100 } }, "viewport.width: "],
    [{ viewport: { width: 100 } }, "viewport.height: "],
    [{ viewport: { width: 100, height: 100, depth: 3 } }, "viewport.depth: is not a known field"],
    [{ archetype: "pixel-7", viewport: { width: 100, height: 100 } }, "viewport: can be chosen for desktop"],
    [{ labels: { "": "x" } }, "labels"],
    [{ labels: { a: 5 } }, "labels.a: must be a string"],
    [{ labels: { a: "\0" } }, "labels.a: must not contain U+0000"],
    [{ labels: seventeen }, "labels: "],
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
    [{ url: `http://a/${long}` }, "url: must be at most 8192 characters"],
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
    [{ action: { kind: "upload" } }, "action.kind: must be one of tap"],
    [{ action: { kind: "__proto__" } }, "action.kind: must be one of tap"],
    [tap({}), "action: give either selector, or x and y"],
    [tap({ selector: "a", x: 1, y: 1 }), "action: give either selector, or x and y"],
    [tap({ x: -1, y: 1 }), "action.x: "],
    [tap({ x: 1e300, y: 1 }), "action.x: "],
    [tap({ selector: "a", count: 4 }), "action.count: "],
    [tap({ selector: "a", button: "side" }), "action.button: must be one of left, right, middle"],
    [tap({ selector: "a", frame: "b" }), "action.frame: must be an array"],
    [tap({ selector: "a", frame: [null] }), "action.frame[0]: must not be null"],
    [tap({ selector: "a[" }), "action.selector: is not a CSS selector"],
    [tap({ selector: "text=Go" }), "action.selector: is not a CSS selector"],
    [tap({ selector: "//a" }), "action.selector: is not a CSS selector"],
    [tap({ selector: "a", frame: ["###"] }), "action.frame"],
    [{ action: { kind: "type", selector: "a", text: ["x"] } }, "action.text: must be a string"],
    [{ action: { kind: "key", key: "NoSuchKey" } }, "action.key: is not a key"],
    [{ action: { kind: "key", key: "a", modifiers: ["Hyper"] } }, "action.modifiers[0]: "],
    [{ action: { kind: "drag", from: { x: 1, y: 1 } } }, "action.to: is required"],
    [{ action: { kind: "swipe", from: { x: 1 }, to: { x: 1, y: 1 } } }, "action.from: give either"],
  ],
  "/{id}/wait": [
    [{}, "condition: is required"],
    [{ condition: { kind: "miracle" } }, "condition.kind: must be one of selector"],
    [{ condition: { kind: "selector" } }, "condition.selector: is required"],
    [{ condition: { kind: "selector", selector: ":nope(" } }, "condition.selector: is not a CSS selector"],
    [{ condition: { kind: "selector", selector: "a", state: "gone" } }, "condition.state: must be one of"],
    [{ condition: { kind: "url" } }, "condition.pattern: is required"],
    [{ condition: { kind: "network_idle", for: 1 } }, "condition.for: is not a known field"],
    [{ condition: { kind: "load_state" }, timeout_ms: "1" }, "timeout_ms: must be a whole number"],
  ],
  "/{id}/capture": [
    [{}, "kind: is required"],
    [{ kind: "video" }, "kind: must be one of screenshot, dom_snapshot, pdf"],
    [{ kind: "screenshot", format: "mhtml" }, "format: is not a format of a screenshot"],
    [{ kind: "screenshot", quality: 0 }, "quality: "],
    [{ kind: "screenshot", selector: "###" }, "selector: is not a CSS selector"],
    [{ kind: "screenshot", full_page: "yes" }, "full_page: must be true or false"],
    [{ kind: "pdf", paper: "a0" }, "paper: "],
  ],
};

/** Bodies that a schema or a page refuses. */
export function fieldTests(scene: GetScene): void {
  const all = Object.entries(cases).flatMap(([path, list]) =>
    list.map(([body, detail, slug = "validation-failed"]) => ({ path, body, detail, slug })),
  );
  test.each(all)("POST $path $body is $slug: $detail", async ({ path, body, detail, slug }) => {
    const { service, sessionId } = scene();
    const answer = await send(service, { path: `/v1/sessions${path.replace("{id}", sessionId)}`, body });
    expectProblem(answer, { status: slug === "not-found" ? 404 : 400, slug, detail });
    if (slug !== "not-found") {
      const { errors, detail: first } = JSON.parse(answer.text);
      expect(`${errors[0].field}: ${errors[0].message}`).toBe(first);
    }
  });

  test("all faults of a request are listed", async () => {
    const answer = await send(scene().service, { path: "/v1/sessions", body: { archetype: 1, runtime: 2, colour: 3 } });
    const fields = JSON.parse(answer.text).errors.map(({ field }: { field: string }) => field);
    expect(fields).toEqual(["archetype", "runtime", "colour"]);
  });

  test("a runtime that is not installed is driver-not-integrated", async () => {
    const answer = await send(scene().service, { path: "/v1/sessions", body: { runtime: "webkit" } });
    expectProblem(answer, { status: 503, slug: "driver-not-integrated" });
  });

  test.each([
    ["/v1/sessions?limit=0", "limit: "],
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
  ])("GET %s is validation-failed: %s", async (path, detail) => {
    const { service, sessionId } = scene();
    expectProblem(await send(service, { path: path.replace("{id}", sessionId) }), {
      status: 400,
      slug: "validation-failed",
      detail,
    });
  });
}
