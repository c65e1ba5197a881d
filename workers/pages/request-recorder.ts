import type { CdpEvents, CdpSession } from "../cdp/cdp-session.ts";
import { loggedAddress } from "./log-text.ts";
import type { LoggedFields, SessionLog } from "./session-log.ts";
import type { Tab } from "./tab.ts";

/** Minimum duration in milliseconds of a slow request. */
const slowMs = 3_000;

/** Maximum number of running requests that are tracked. Pages can start any number. */
const maxRunning = 500;

/** Maximum stored characters of a URL. Pages can request URLs of up to 2 MiB. */
const rememberedLength = 2_000;

interface RunningRequest {
  readonly pageId: string;
  readonly url: string;
  readonly method: string;
  readonly kind: string;
  /** Seconds of the browser's monotonic clock. */
  readonly startedAt: number;
  httpStatus?: number;
}

/**
 * Records failed and slow requests. At level `full`, records all requests. Uses only events that are enabled for
 * `PageTraffic` anyway.
 */
export class RequestRecorder {
  readonly #log: SessionLog;
  /** Running requests by id, oldest first. Ids are unique in a browser. */
  readonly #running = new Map<string, RunningRequest>();

  constructor(log: SessionLog) {
    this.#log = log;
  }

  watchTab(tab: Tab, pageId: string): void {
    tab.listen({ onSession: (session) => this.#follow(session, pageId) });
  }

  #follow(session: CdpSession, pageId: string): void {
    session.on("Network.requestWillBeSent", (event) => {
      if (this.#log.isOn) this.#begin(event, pageId);
    });
    session.on("Network.responseReceived", ({ requestId, timestamp, response: { status } }) => {
      const request = this.#running.get(requestId);
      if (!request) return;
      request.httpStatus = status;
      // Recorded now, because the end of the response is not reported if its document is replaced.
      if (status >= 400) this.#add(requestId, request, timestamp, {});
    });
    session.on("Network.loadingFinished", ({ requestId, timestamp }) => {
      const request = this.#running.get(requestId);
      if (!request) return;
      const isSlow = (timestamp - request.startedAt) * 1_000 >= slowMs;
      if (isSlow || this.#log.isFull) this.#add(requestId, request, timestamp, {});
      else this.#running.delete(requestId);
    });
    session.on("Network.loadingFailed", (event) => this.#fail(event));
  }

  #begin({ requestId, type = "Other", request, timestamp, redirectResponse }: RequestBegin, pageId: string): void {
    const earlier = this.#running.get(requestId);
    if (earlier && redirectResponse && this.#log.isFull) {
      earlier.httpStatus = redirectResponse.status;
      this.#add(requestId, earlier, timestamp, {});
    }
    // URLs of these schemes are not requested from a server.
    if (/^(?:data|blob|about|javascript):/i.test(request.url)) return;
    const url = shortCopy(request.url);
    this.#running.delete(requestId);
    this.#running.set(requestId, { pageId, url, method: request.method, kind: type, startedAt: timestamp });
    if (this.#running.size <= maxRunning) return;
    const [oldest] = this.#running.keys();
    if (oldest !== undefined) this.#forget(oldest);
  }

  #forget(requestId: string): void {
    this.#running.delete(requestId);
  }

  #fail({ requestId, timestamp, errorText, canceled = false, corsErrorStatus }: CdpEvents["Network.loadingFailed"]) {
    const request = this.#running.get(requestId);
    if (!request) return;
    // Pages and navigations often cancel requests, so cancelled requests do not count as failed.
    if (canceled && !this.#log.isFull) return this.#forget(requestId);
    const error = corsErrorStatus ? `${errorText} (${corsErrorStatus.corsError})` : errorText;
    this.#add(requestId, request, timestamp, { error: error.slice(0, 200) });
  }

  #add(requestId: string, request: RunningRequest, timestamp: number, outcome: Pick<LoggedFields, "error">): void {
    this.#running.delete(requestId);
    const { pageId, url, method, kind, startedAt, httpStatus } = request;
    this.#log.add({
      type: "request",
      pageId,
      url: loggedAddress(url),
      method: method.slice(0, 20),
      kind,
      durationMs: Math.max(0, Math.round((timestamp - startedAt) * 1_000)),
      ...(httpStatus !== undefined && { httpStatus }),
      ...outcome,
    });
  }
}

type RequestBegin = CdpEvents["Network.requestWillBeSent"];

/** Cuts a long URL, and copies it: V8's slice would keep the whole string in memory. */
function shortCopy(url: string): string {
  return url.length <= rememberedLength ? url : Buffer.from(url.slice(0, rememberedLength)).toString();
}
