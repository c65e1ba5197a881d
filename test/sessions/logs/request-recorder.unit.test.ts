import { expect, test } from "vitest";
import { SessionLogLevel } from "../../../src/gen/pilothouse/v1/session_log_pb.ts";
import type { CdpSession } from "../../../workers/cdp/cdp-session.ts";
import { RequestRecorder } from "../../../workers/pages/request-recorder.ts";
import { SessionLog } from "../../../workers/pages/session-log.ts";
import { scriptPage } from "../../support/scripted-page.ts";

function record(level: SessionLogLevel) {
  const log = new SessionLog();
  log.start(level);
  const { tab, session } = scriptPage();
  new RequestRecorder(log).watchTab(tab, "page_1");
  const entries = () =>
    log.read(0).map(({ url, error, httpStatus, durationMs }) => ({ url, error, httpStatus, durationMs }));
  return { session, entries };
}

let requests = 0;

/** Sends a request that starts at 100 s. Returns its id. */
function begin(session: CdpSession, url: string, more: object = {}): string {
  requests += 1;
  const requestId = `r${requests}`;
  const request = { url, method: "GET" };
  session.emit("Network.requestWillBeSent", {
    requestId,
    loaderId: "L",
    type: "Fetch",
    request,
    timestamp: 100,
    ...more,
  });
  return requestId;
}

const respond = (session: CdpSession, requestId: string, status: number): void =>
  session.emit("Network.responseReceived", {
    requestId,
    loaderId: "L",
    timestamp: 100.5,
    response: { url: "", status, headers: { "x-canary": "canary" } },
  });
const finish = (session: CdpSession, requestId: string, timestamp: number): void =>
  session.emit("Network.loadingFinished", { requestId, timestamp });
const fail = (session: CdpSession, requestId: string, more: object = {}): void =>
  session.emit("Network.loadingFailed", { requestId, timestamp: 101, errorText: "net::ERR_FAILED", ...more });

const site = "https://site.test/a";

test.each([
  ["slow from 3 s", 103, 1],
  ["not slow below 3 s", 102.9, 0],
])("a request is %s", (_, end, count) => {
  const { session, entries } = record(SessionLogLevel.ERRORS);
  const id = begin(session, site);
  respond(session, id, 200);
  finish(session, id, end);
  expect(entries()).toHaveLength(count);
});

test("failed requests are recorded once, with their reason", () => {
  const { session, entries } = record(SessionLogLevel.ERRORS);
  const missing = begin(session, `${site}?item=canary`);
  respond(session, missing, 404);
  finish(session, missing, 110);
  fail(session, begin(session, site));
  fail(session, begin(session, site), { corsErrorStatus: { corsError: "MissingAllowOriginHeader" } });
  fail(session, begin(session, site), { canceled: true });
  const fine = begin(session, site);
  respond(session, fine, 304);
  finish(session, fine, 100.7);
  expect(entries()).toEqual([
    { url: `${site}?item`, httpStatus: 404, durationMs: 500 },
    { url: site, error: "net::ERR_FAILED", durationMs: 1_000 },
    { url: site, error: "net::ERR_FAILED (MissingAllowOriginHeader)", durationMs: 1_000 },
  ]);
});

test("with full, all requests and redirects are recorded, but no URLs with data", () => {
  const { session, entries } = record(SessionLogLevel.FULL);
  const id = begin(session, site);
  const redirect = { requestId: id, timestamp: 100.2, redirectResponse: { status: 302 } };
  begin(session, `${site}/b`, redirect);
  respond(session, id, 200);
  finish(session, id, 100.9);
  fail(session, begin(session, site), { canceled: true });
  finish(session, begin(session, "data:text/plain,canary"), 101);
  expect(entries()).toMatchObject([
    { url: site, httpStatus: 302, durationMs: 200 },
    { url: `${site}/b`, httpStatus: 200 },
    { url: site, error: "net::ERR_FAILED" },
  ]);
});

test("of requests that never end, only the newest 500 are remembered", () => {
  const { session, entries } = record(SessionLogLevel.ERRORS);
  const [first, ...others] = Array.from({ length: 501 }, () => begin(session, `${site}?${"x".repeat(1_000_000)}`));
  for (const id of [first, ...others]) if (id !== undefined) fail(session, id);
  expect(entries()).toHaveLength(500);
});
