import { type NavigateRequest, WaitUntil } from "../../../src/gen/pilothouse/v1/session_pb.ts";
import { unlessLate, within } from "../../../src/platform/deadline.ts";
import { Failure, fail } from "../../../src/platform/errors.ts";
import { isMetadataHost } from "../../../src/platform/outgoing/address-rules.ts";
import type { CdpSession } from "../../cdp/cdp-session.ts";
import type { EgressRelay } from "../../egress/egress-relay.ts";
import type { EgressFailure } from "../../egress/journal.ts";
import { refusalReasons } from "../../egress/refusal-page.ts";
import type { DownloadStore } from "../../files/download-store.ts";
import { cutText } from "../../injected/plain-text.ts";
import type { PageRegistry } from "../../pages/page-registry.ts";
import type { Progress } from "../../pages/progress.ts";
import type { SessionPage } from "../../pages/session-page.ts";
import type { LoadState } from "../../pages/tab.ts";
import { messageOf, netErrorOf, netFailure, pageFailure } from "./browser-failure.ts";

/**
 * Milliseconds after which a renderer counts as hung if its document has not committed. The time starts at the server's
 * response, or at the navigate command if the old document blocks the request.
 */
const hungMs = 2_000;

/**
 * Longest wait in milliseconds for a renderer to answer a probe. A renderer that does not answer in time is replaced.
 */
const probeMs = 1_000;

/** Longest wait in milliseconds for `Page.stopLoading`. Shorter than the grace period after a command's timeout. */
const stopMs = 100;

export interface NavigateScene {
  readonly pages: PageRegistry;
  readonly sessionPage: SessionPage;
  readonly progress: Progress;
  readonly relay: Pick<EgressRelay, "wasRefused" | "failureOf" | "refusalReasonOf">;
  readonly downloads: Pick<DownloadStore, "nameSince">;
  /** Whether refusals include instructions for the operator to allow the address. */
  readonly showRemedy: boolean;
}

/** Converts the requested wait condition to a load state. */
export function loadStateOf(waitUntil: WaitUntil): LoadState {
  if (waitUntil === WaitUntil.DOMCONTENTLOADED) return "domcontentloaded";
  return waitUntil === WaitUntil.COMMIT ? "commit" : "load";
}

interface NavigationResult {
  /** HTTP status of the response with the document. Absent if the document has no HTTP response. */
  readonly httpStatus?: number;
  readonly download?: { readonly fileName: string };
}

/** Converts the HTTP response of a document to a navigation result. Without a response, the result is empty. */
export const navigationResultOf = (answer: { readonly status: number } | undefined): NavigationResult =>
  answer ? { httpStatus: answer.status } : {};

/** Loads an address in a page. The gateway has already validated the address. */
export async function navigate(scene: NavigateScene, request: NavigateRequest): Promise<NavigationResult> {
  const url = new URL(request.url);
  const { sessionPage, pages, progress, downloads } = scene;
  if (sessionPage.isCrashed || (sessionPage.isUnresponsive && !(await isAlive(sessionPage)))) {
    await progress.race(pages.replace(sessionPage));
  }
  const since = Date.now();
  sessionPage.isNavigating = true;
  sessionPage.traffic.forgetDocument();
  try {
    const result = await load(scene, url.href);
    if (result === "download") {
      const fileName = await downloads.nameSince(since, sessionPage.targetId);
      return fileName === undefined ? {} : { download: { fileName } };
    }
    if (result === "document") await waitForLoadState(sessionPage, loadStateOf(request.waitUntil), progress);
    const { answer } = sessionPage.traffic;
    assertNotRefused(scene, since);
    return navigationResultOf(answer);
  } catch (thrown) {
    // If a person has taken control, the navigation continues.
    if (netErrorOf(thrown) === undefined && !isControlTaken(thrown)) await stopLoading(sessionPage);
    throw toFailure(scene, thrown, sessionPage.traffic.requestedUrl ?? url.href, since);
  } finally {
    sessionPage.isNavigating = false;
  }
}

/** Throws if the relay refused the page's document. `since` is when the navigation started, by `Date.now()`. */
function assertNotRefused(scene: NavigateScene, since: number): void {
  const { answer } = scene.sessionPage.traffic;
  if (answer?.seemsBlocked && wasRefused(scene, answer.url, since)) throw refusedFailure(scene, answer.url);
}

/**
 * Throws if the page has navigated itself to an address that cannot be reached or that the relay refuses. `since` is
 * when the first navigation started, by `Date.now()`.
 */
export function assertReached(scene: NavigateScene, since: number): void {
  const { tab, traffic } = scene.sessionPage;
  if (tab.isErrorPage) throw toFailure(scene, new Error("net::ERR_FAILED"), traffic.requestedUrl ?? tab.url, since);
  assertNotRefused(scene, since);
}

/**
 * Resolves when the page's document has reached the load state. If a navigation is pending, waits for the next
 * document. Throws `session-timeout` if the document does not reach the state in time.
 */
export async function waitForLoadState({ tab }: SessionPage, state: LoadState, progress: Progress): Promise<void> {
  const reached = await tab.changes.until(() => tab.hasReached(state) || undefined, progress);
  if (!reached) throwLoadTimeout();
}

function isControlTaken(thrown: unknown): boolean {
  return thrown instanceof Failure && "holder_client_id" in thrown.extensions;
}

function throwLoadTimeout(): never {
  throw fail(
    "session-timeout",
    {},
    { detail: "the page did not load within the timeout: increase timeout_ms, or use an earlier wait_until" },
  );
}

/**
 * Resolves with `document` when a document has committed, or if the page itself has navigated elsewhere. Resolves with
 * `download` if the response is a download, and with `nothing` if it has no content (status 204 or 205).
 */
async function load(scene: NavigateScene, url: string): Promise<"document" | "download" | "nothing"> {
  const { sessionPage, progress } = scene;
  const before = sessionPage.tab.committed;
  const { errorText, isDownload } = await unlessLate(
    navigateOrReplaceTab(scene, url),
    progress.remaining(),
    throwLoadTimeout,
  );
  if (isDownload) return "download";
  if (errorText === undefined) return "document";
  const { tab, traffic } = sessionPage;
  if (netErrorOf(errorText) === "ERR_ABORTED") {
    if (traffic.answer?.status === 204 || traffic.answer?.status === 205) return "nothing";
    // The browser's error page for the previous navigation arrived late and interrupted this navigation.
    if (tab.committed > before && tab.isErrorPage) return load(scene, url);
    // The page itself navigated elsewhere meanwhile, so the command continues with that navigation.
    if (tab.committed > before || tab.isLeaving) return "document";
  }
  throw new Error(errorText);
}

/**
 * Navigates. If the renderer hangs before the document commits, navigates in a new tab instead: an endless script
 * blocks same-site navigation.
 */
async function navigateOrReplaceTab(
  { sessionPage, progress, pages }: NavigateScene,
  url: string,
): Promise<NavigateResponse> {
  const done = new AbortController();
  const first = navigateTab(sessionPage, url, progress);
  try {
    const outcome = await progress.race(Promise.race([first, detectHang(sessionPage, done.signal)]));
    if (outcome !== "hung") return outcome;
    first.catch(() => undefined);
    await progress.race(pages.replace(sessionPage));
    return await navigateTab(sessionPage, url, progress);
  } finally {
    done.abort();
  }
}

/** Starts a navigation. Resolves when the new document has committed, or when no document will commit. */
async function navigateTab({ cdp, tab }: SessionPage, url: string, progress: Progress): Promise<NavigateResponse> {
  const navigated = await progress.race(cdp.send("Page.navigate", { url }));
  const { loaderId, errorText } = navigated;
  if (loaderId === undefined || errorText !== undefined) return navigated;
  // The browser answers once the renderer has received the document. The renderer may hang before the commit.
  const hasCommitted = () => {
    tab.assertOpen();
    return tab.hasShown(loaderId) || undefined;
  };
  await tab.changes.until(hasCommitted, progress);
  return navigated;
}

interface NavigateResponse {
  /** Absent on success. */
  readonly errorText?: string | undefined;
  readonly isDownload?: boolean;
}

/**
 * Resolves when the renderer counts as hung. Never resolves after a document other than an error page has committed, or
 * after `done` has aborted.
 */
function detectHang({ tab, traffic }: SessionPage, done: AbortSignal): Promise<"hung"> {
  const { promise, resolve } = Promise.withResolvers<"hung">();
  const before = tab.committed;
  let since = performance.now();
  const timer = setInterval(() => {
    if (tab.committed > before && !tab.isErrorPage) clearInterval(timer);
    else if (traffic.isAwaitingServer) since = performance.now();
    else if (performance.now() - since >= hungMs) resolve("hung");
  }, hungMs / 10);
  done.addEventListener("abort", () => clearInterval(timer), { once: true });
  return promise;
}

/** Stops a pending navigation, which would otherwise block our scripts in the old document. */
async function stopLoading({ cdp }: SessionPage): Promise<void> {
  await within(cdp.send("Page.stopLoading"), stopMs, undefined);
}

async function isAlive(sessionPage: SessionPage): Promise<boolean> {
  // While a page is navigating, the browser forwards no commands to the renderer.
  await stopLoading(sessionPage);
  const alive = await isResponding(sessionPage.cdp);
  if (alive) sessionPage.isUnresponsive = false;
  return alive;
}

/** Whether a renderer answers within `probeMs`. An error counts as an answer. */
function isResponding(cdp: CdpSession): Promise<boolean> {
  const probe = cdp.send("Runtime.evaluate", { expression: "1" });
  return within(
    probe.then(
      () => true,
      () => true,
    ),
    probeMs,
    false,
  );
}

function toFailure(scene: NavigateScene, thrown: unknown, url: string, since: number): Failure {
  const isNet = netErrorOf(thrown) !== undefined;
  if (isNet && wasRefused(scene, url, since)) return refusedFailure(scene, url);
  const egressFailure = isNet ? failureOf(scene, url, since) : undefined;
  if (egressFailure) return netFailure(egressFailure.netError, { url, proxyFault: egressFailure.proxyFault });
  if (thrown instanceof Failure) return thrown;
  const netError = netErrorOf(thrown);
  if (netError !== undefined) return netFailure(netError, { url });
  return pageFailure(thrown) ?? fail("driver-error", {}, { detail: cutText(messageOf(thrown), 300), cause: thrown });
}

function wasRefused({ relay }: NavigateScene, url: string, since: number): boolean {
  const endpoint = endpointOf(url);
  return endpoint !== undefined && relay.wasRefused(endpoint.host, endpoint.port, since);
}

function failureOf({ relay }: NavigateScene, url: string, since: number): EgressFailure | undefined {
  const endpoint = endpointOf(url);
  return endpoint && relay.failureOf(endpoint.host, endpoint.port, since);
}

function refusedFailure({ relay, showRemedy }: NavigateScene, url: string): Failure {
  const endpoint = endpointOf(url);
  const target = endpoint ? `${endpoint.host}:${endpoint.port}` : url;
  const why = endpoint ? relay.refusalReasonOf(endpoint.host) : "private";
  const isAdvisable = why === "private" && showRemedy && !(endpoint && isMetadataHost(endpoint.host));
  const remedy = isAdvisable ? `; start the service with EGRESS_ALLOW=${target} to allow it` : "";
  const detail = `${target} ${refusalReasons[why]}${remedy}`;
  return fail("driver-error", { blocked_by: "egress" }, { detail });
}

function endpointOf(url: string): { host: string; port: number } | undefined {
  const parsed = URL.parse(url);
  if (!parsed || parsed.hostname === "") return undefined;
  return { host: parsed.hostname, port: Number(parsed.port || (parsed.protocol === "https:" ? 443 : 80)) };
}
