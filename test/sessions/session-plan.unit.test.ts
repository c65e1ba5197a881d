import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { describe, expect, test } from "vitest";
import { CreateSessionRequestSchema, OnChallenge } from "../../src/gen/pilothouse/v1/session_pb.ts";
import { tiers } from "../../src/limits/tiers.ts";
import { assertNavigable } from "../../src/sessions/commands/page-address.ts";
import { planSession } from "../../src/sessions/launch/session-plan.ts";
import { endings, isEnded, transitions } from "../../src/sessions/session-states.ts";

type Request = MessageInitShape<typeof CreateSessionRequestSchema>;

const plan = (request: Request, tier = "free") =>
  planSession(create(CreateSessionRequestSchema, request), tiers.get(tier));

test("fills in the client's omissions", () => {
  expect(plan({})).toMatchObject({
    timeoutSeconds: 900,
    browser: {
      archetype: "desktop-chrome",
      runtime: "headless-shell",
      idleTimeoutSeconds: 300,
      viewport: { width: 1280, height: 720, deviceScaleFactor: 1 },
      locale: "en-US",
      timezone: "UTC",
      onChallenge: OnChallenge.PAUSE,
      profileId: "",
    },
  });
  // The request has no time zone, so none is returned.
  expect(plan({}).request.timezone).toBeUndefined();
});

test.each([
  ["free", 900],
  ["personal", 3_600],
  ["api_builder", 21_600],
  ["api_scale", 86_400],
  ["enterprise", 86_400],
])("a session of the tier %s runs for %i s by default", (tier, seconds) => {
  expect(plan({}, tier).timeoutSeconds).toBe(seconds);
});

test("keeps the client's choices", () => {
  const chosen = { timezone: "Europe/Vienna", locale: "de-AT", runtime: "chromium", archetype: "pixel-7" };
  const { browser, timeoutSeconds } = plan({ ...chosen, timeoutSeconds: 60 });
  expect({ ...browser, timeoutSeconds }).toMatchObject({ ...chosen, timeoutSeconds: 60 });
  expect(plan({ viewport: { width: 800, height: 600 } }).viewport).toMatchObject({
    width: 800,
    height: 600,
    deviceScaleFactor: 1,
  });
});

const logins: [server: string, given: { username?: string; password?: string }, planned: object][] = [
  ["http://u:p@p:1", {}, { server: "http://p:1", username: "u", password: "p" }],
  ["socks5://u%40x:a%3Ab%2F@[::1]:1", {}, { server: "socks5://[::1]:1", username: "u@x", password: "a:b/" }],
  ["http://u:p@ss:w@p:1", {}, { server: "http://p:1", username: "u", password: "p@ss:w" }],
  ["http://token@p:1", {}, { server: "http://p:1", username: "token" }],
  ["http://u:p@p:1", { username: "v" }, { server: "http://p:1", username: "v", password: "p" }],
  ["http://u:p@p:1", { username: "v", password: "" }, { server: "http://p:1", username: "v", password: "" }],
];

test.each(logins)("removes the credentials from the proxy address %s", (server, given, planned) => {
  const { proxy } = plan({ proxy: { server, ...given } }).browser;
  expect({ ...proxy, $typeName: undefined }).toEqual({ ...planned, $typeName: undefined });
});

test.each([
  ["utc", "UTC"],
  ["europe/vienna", "Europe/Vienna"],
  ["AMERICA/NEW_YORK", "America/New_York"],
])("makes the time zone %s canonical", (timezone, canonical) => {
  const { request, browser } = plan({ timezone });
  expect([request.timezone, browser.timezone]).toEqual([canonical, canonical]);
});

test.each([
  ["Pixel 7", "pixel-7"],
  ["iphone 15 pro max", "iphone-15-pro-max"],
  ["Galaxy S9+", "galaxy-s9-plus"],
  ["Desktop Chrome", "desktop-chrome"],
])("finds the archetype %s", (archetype, name) => {
  expect(plan({ archetype }).browser.archetype).toBe(name);
});

describe("invalid requests", () => {
  const cases: [what: string, request: Request, failure: object][] = [
    ["an unknown archetype", { archetype: "pixl-7" }, { errors: [{ field: "archetype", message: /pixel-7/ }] }],
    ["an unknown time zone", { timezone: "Mars/Olympus" }, { errors: [{ field: "timezone" }] }],
    ["an offset for a time zone", { timezone: "+0100" }, { errors: [{ field: "timezone" }] }],
    ["an invalid language tag", { locale: "a-b" }, { errors: [{ field: "locale" }] }],
    [
      "more time than the tier has",
      { timeoutSeconds: 901 },
      { errors: [{ field: "timeout_seconds", message: /900/ }] },
    ],
    [
      "a viewport of a phone",
      { archetype: "pixel-7", viewport: { width: 800, height: 600 } },
      { errors: [{ field: "viewport" }] },
    ],
    [
      "all faults at once",
      { archetype: "x", timezone: "x" },
      { errors: [{ field: "archetype" }, { field: "timezone" }] },
    ],
    [
      "a proxy address with a path",
      { proxy: { server: "http://p:1/x" } },
      { slug: "bad-request", errors: [{ field: "proxy.server" }] },
    ],
    [
      "a login in a proxy address that is not percent-encoded",
      { proxy: { server: "http://u:100%@p:1" } },
      { slug: "bad-request", errors: [{ field: "proxy.server", message: /%25/ }] },
    ],
    [
      "a long password in the address of a SOCKS5 proxy",
      { proxy: { server: `socks5://u:${"p".repeat(256)}@p:1080` } },
      { slug: "validation-failed", errors: [{ field: "proxy.password" }] },
    ],
    ["a proxy address without a port", { proxy: { server: "socks5://p" } }, { slug: "bad-request" }],
    [
      "a password too long for SOCKS5",
      { proxy: { server: "socks5://p:1080", username: "u", password: "é".repeat(128) } },
      {
        slug: "validation-failed",
        errors: [{ field: "proxy.password", message: "must be at most 255 bytes for socks5" }],
      },
    ],
  ];
  test.each(cases)("refuses %s", (_what, request, failure) => {
    const slug = "slug" in failure ? {} : { slug: "validation-failed" };
    const faults = "errors" in failure && Array.isArray(failure.errors) ? failure.errors : undefined;
    let thrown: { slug?: string; errors?: { field: string; message: string }[] } = {};
    try {
      plan(request);
    } catch (error) {
      thrown = error as typeof thrown;
    }
    expect(thrown).toMatchObject({
      ...failure,
      ...slug,
      ...(faults && { errors: faults.map(({ field }) => ({ field })) }),
    });
    for (const [index, { message }] of faults?.entries() ?? []) {
      if (message) expect(thrown.errors?.[index]?.message).toMatch(message);
    }
  });
});

test("allows no transition from an ended session, and ends it once", () => {
  for (const { from, to } of Object.values(transitions)) {
    expect(from.some(isEnded)).toBe(false);
    expect(from).not.toContain(to);
  }
  for (const trigger of Object.values(endings)) expect(isEnded(transitions[trigger].to)).toBe(true);
});

test.each([
  ["https://example.com/", undefined],
  ["about:blank", undefined],
  ["example.com", "is not an absolute URL: put https:// before it"],
  ["localhost:3000/a?b", "is not an absolute URL: put http:// before it"],
  ["127.0.0.1:8080", "is not an absolute URL: put http:// before it"],
  ["example.com:99999", "must be http, https or about:blank"],
  ["nowhere", "is not an absolute URL, such as https://example.com"],
  ["http://", "is not an absolute URL, such as https://example.com"],
  ["mailto:a@example.com", "must be http, https or about:blank"],
  ["javascript:alert(1)", "must be http, https or about:blank"],
  ["chrome://version", "must be http, https or about:blank"],
  ["file:///etc/passwd", "must be http, https or about:blank"],
])("validates the address %s", (url, message) => {
  if (message === undefined) assertNavigable(url);
  else
    expect(() => assertNavigable(url)).toThrow(
      expect.objectContaining({ slug: "bad-request", errors: [{ field: "url", message }] }),
    );
});
