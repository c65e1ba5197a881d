import type { Page, Response } from "playwright-core";
import { type NavigateRequest, WaitUntil } from "../../src/gen/pilothouse/v1/session_pb.ts";
import { within } from "../../src/platform/deadline.ts";
import { type Failure, fail } from "../../src/platform/errors.ts";
import { isMetadataHost } from "../../src/platform/outgoing/address-rules.ts";
import type { EgressFailure } from "../egress/journal.ts";
import type { Relay } from "../egress/relay.ts";
import type { PageBook } from "../pages/page-book.ts";
import type { Progress } from "../pages/progress.ts";
import type { SessionPage } from "../pages/session-page.ts";
import type { CdpSession } from "../wire/cdp-session.ts";
import { isTimeout, messageOf, netErrorOf, netFailure, pageFailure } from "./browser-failure.ts";
import { limits } from "./scene.ts";

/** How long the old document may keep a navigation from starting before its renderer is asked whether it lives. */
const probeAfterMs = 1_000;

/** How long a living renderer may take to say so. */
const probeMs = 1_000;

/** How long giving up a navigation may take, which is less than the grace after a command's timeout. */
const stopMs = 100;

/** Where full Chromium goes when a page cannot be shown. */
const errorPage = "chrome-error:";

/** What a navigation works with. */
export interface NavigateScene {
  readonly pages: PageBook;
  readonly sessionPage: SessionPage;
  readonly progress: Progress;
  readonly relay: Pick<Relay, "wasRefused" | "failureOf">;
  /** Refusals say how the operator lets an address through. */
  readonly showRemedy: boolean;
}

type LoadState = "load" | "domcontentloaded" | "commit";

/** How Playwright calls the ways in which a page can be loaded. */
export function loadStateOf(waitUntil: WaitUntil): LoadState {
  if (waitUntil === WaitUntil.DOMCONTENTLOADED) return "domcontentloaded";
  return waitUntil === WaitUntil.COMMIT ? "commit" : "load";
}

/** Loads an address, which the gateway has checked, in a page; gives the HTTP status of its document, where there was one. */
export async function navigate(scene: NavigateScene, request: NavigateRequest): Promise<number | undefined> {
  const url = new URL(request.url);
  const { sessionPage, pages, progress } = scene;
  if (sessionPage.isCrashed || (sessionPage.isSuspect && !(await isAlive(sessionPage)))) {
    await progress.race(pages.replace(sessionPage));
  }
  const since = Date.now();
  sessionPage.isNavigating = true;
  sessionPage.traffic.forgetDocument();
  try {
    const status = await load(scene, url.href, loadStateOf(request.waitUntil));
    const { answer } = sessionPage.traffic;
    if (answer?.looksBlocked && wasRefused(scene, answer.url, since)) throw refused(scene, answer.url);
    return status;
  } catch (thrown) {
    if (netErrorOf(thrown) === undefined) await stopLoading(sessionPage);
    throw explain(scene, thrown, sessionPage.traffic.requestedUrl ?? url.href, since);
  } finally {
    sessionPage.isNavigating = false;
  }
}

async function load(scene: NavigateScene, url: string, waitUntil: LoadState): Promise<number | undefined> {
  const { sessionPage, progress } = scene;
  const { page } = sessionPage;
  try {
    const response = await gotoUnlessHung(scene, url, waitUntil);
    return response?.status();
  } catch (thrown) {
    const message = messageOf(thrown);
    if (message.includes("Download is starting")) return undefined;
    // The browser's own page about the failure of the navigation before has come late, and in between.
    if (message.includes(`another navigation to "${errorPage}`)) return load(scene, url, waitUntil);
    if (message.includes("interrupted by another navigation")) {
      // The page sent itself elsewhere while it loaded: that is where the navigation ends.
      await page.waitForLoadState(waitUntil === "commit" ? "domcontentloaded" : waitUntil, limits({ progress }));
      return sessionPage.traffic.answer?.status;
    }
    const status = sessionPage.traffic.answer?.status;
    if (netErrorOf(thrown) === "ERR_ABORTED" && (status === 204 || status === 205)) return status;
    throw thrown;
  }
}

/**
 * Navigates, and when the old document's renderer turns out to hang before the new one has begun, does so in another
 * tab: a renderer in an endless script takes no navigation within its site.
 */
async function gotoUnlessHung(scene: NavigateScene, url: string, waitUntil: LoadState): Promise<Response | null> {
  const { sessionPage, progress, pages } = scene;
  const over = new AbortController();
  const { page } = sessionPage;
  const goto = () => sessionPage.page.goto(url, { ...limits({ progress }), waitUntil });
  const first = goto();
  const hung = watchForHang(page, sessionPage.cdp, over.signal);
  try {
    const outcome = await progress.race(Promise.race([first.then((response) => ({ response })), hung]));
    if (outcome !== "hung") return outcome.response;
    first.catch(() => undefined);
    await progress.race(pages.replace(sessionPage));
    return await progress.race(goto());
  } finally {
    over.abort();
  }
}

/** Resolves when the renderer does not answer although its document has not been left; never, once `over` aborts. */
function watchForHang(page: Page, cdp: Promise<CdpSession>, over: AbortSignal): Promise<"hung"> {
  const { promise, resolve } = Promise.withResolvers<"hung">();
  let timer: NodeJS.Timeout | undefined;
  const stop = () => {
    clearTimeout(timer);
    page.off("framenavigated", onNavigated);
  };
  const onNavigated = (frame: unknown) => {
    if (frame === page.mainFrame()) stop();
  };
  const probe = async () => {
    const alive = await answers(cdp);
    if (over.aborted) return;
    if (!alive) resolve("hung");
    else timer = setTimeout(probe, probeAfterMs);
  };
  timer = setTimeout(probe, probeAfterMs);
  page.on("framenavigated", onNavigated);
  over.addEventListener("abort", stop, { once: true });
  return promise;
}

/** Gives up a navigation that has not come to its end: until then the old document runs no script of ours. */
async function stopLoading({ cdp }: SessionPage): Promise<void> {
  await within(
    cdp.then((session) => session.send("Page.stopLoading")),
    stopMs,
    undefined,
  );
}

async function isAlive(sessionPage: SessionPage): Promise<boolean> {
  const alive = await answers(sessionPage.cdp);
  if (alive) sessionPage.isSuspect = false;
  return alive;
}

/** Whether a renderer answers in time; an error is an answer. */
function answers(cdp: Promise<CdpSession>): Promise<boolean> {
  const asked = cdp.then((session) => session.send("Runtime.evaluate", { expression: "1" }));
  return within(
    asked.then(
      () => true,
      () => true,
    ),
    probeMs,
    false,
  );
}

function explain(scene: NavigateScene, thrown: unknown, url: string, since: number): Failure {
  const isNet = netErrorOf(thrown) !== undefined;
  if (isNet && wasRefused(scene, url, since)) return refused(scene, url);
  const onTheWay = isNet ? failureOf(scene, url, since) : undefined;
  if (onTheWay) return netFailure(onTheWay.netError, onTheWay.proxyFault);
  if (isTimeout(thrown)) {
    return fail("session-timeout", {}, { detail: "the page has not loaded within the timeout", cause: thrown });
  }
  return pageFailure(thrown) ?? fail("driver-error", {}, { detail: messageOf(thrown).slice(0, 300), cause: thrown });
}

function wasRefused({ relay }: NavigateScene, url: string, since: number): boolean {
  const place = placeOf(url);
  return place !== undefined && relay.wasRefused(place.host, place.port, since);
}

function failureOf({ relay }: NavigateScene, url: string, since: number): EgressFailure | undefined {
  const place = placeOf(url);
  return place && relay.failureOf(place.host, place.port, since);
}

function refused({ showRemedy }: NavigateScene, url: string): Failure {
  const place = placeOf(url);
  const target = place ? `${place.host}:${place.port}` : url;
  const isAdvisable = showRemedy && !(place && isMetadataHost(place.host));
  const remedy = isAdvisable ? `; start the service with EGRESS_ALLOW=${target} to let it through` : "";
  const detail = `${target} is not on the public internet, and pages may reach nothing else${remedy}`;
  return fail("driver-error", { blocked_by: "egress" }, { detail });
}

function placeOf(url: string): { host: string; port: number } | undefined {
  const parsed = URL.parse(url);
  if (!parsed || parsed.hostname === "") return undefined;
  return { host: parsed.hostname, port: Number(parsed.port || (parsed.protocol === "https:" ? 443 : 80)) };
}
