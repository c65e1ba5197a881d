import { create } from "@bufbuild/protobuf";
import { type SessionState, SessionStateSchema } from "../../src/gen/pilothouse/v1/session_pb.ts";
import { within } from "../../src/platform/deadline.ts";
import { formatTarget } from "../../src/platform/outgoing/address-rules.ts";
import { challengeMessage } from "../bot-checks/challenge-watch.ts";
import { summarizePages } from "../pages/page-summary.ts";
import type { SessionPage } from "../pages/session-page.ts";
import type { SessionBrowser } from "../pool/session-browser.ts";
import type { ChallengePause } from "./challenge-pause.ts";
import type { SessionControl } from "./client-control.ts";

/** Milliseconds to wait for the scroll position, in case the page hangs. */
const metricsMs = 500;

/** Maximum number of refused targets in the state. */
const maxRefused = 10;

/**
 * Resolves with the state of a session, paused or not. Takes at most about 500 ms, even if pages hang. Throws
 * `driver-error` if the last page has just closed.
 */
export async function describeSession(
  browser: SessionBrowser,
  pause: ChallengePause,
  control: SessionControl,
  isBrief: boolean,
): Promise<SessionState> {
  const { pages, viewport, relay, openDialogs, downloadStore, challengeWatch } = browser;
  const active = pages.active;
  const [summaries, scroll] = await Promise.all([
    summarizePages(pages, !isBrief || pages.all.length > 1),
    isBrief ? undefined : scrollOf(active),
  ]);
  const { sent, received } = relay.bytes;
  const summary = summaries.find((page) => page.active);
  const { status, reason } = pause;
  const { challenge } = challengeWatch;
  return create(SessionStateSchema, {
    status,
    ...(reason !== undefined && { pauseReason: reason }),
    ...(challenge && { challenge: challengeMessage(challenge) }),
    url: summary?.url ?? "",
    title: summary?.title ?? "",
    // A page that does not answer counts as loading.
    loading: active.isNavigating || active.tab.isLoading || (scroll === undefined && !isBrief),
    viewport,
    ...(scroll && { scroll }),
    pages: summaries,
    control: control.message,
    egress: {
      state: relay.state,
      bytesSent: BigInt(sent),
      bytesReceived: BigInt(received),
      refused: refusedBy(relay),
      blocked: Object.fromEntries([...relay.blocked].map(([kind, count]) => [kind, BigInt(count)])),
    },
    dialogs: [...openDialogs.dialogs],
    downloads: [...downloadStore.downloads],
  });
}

/** Returns the last 10 distinct targets that were refused, newest last. */
function refusedBy({ refusals }: SessionBrowser["relay"]): string[] {
  const targets = new Set(refusals.toReversed().map(formatTarget));
  return [...targets].slice(0, maxRefused).reverse();
}

async function scrollOf({ isCrashed, cdp }: SessionPage): Promise<{ x: number; y: number } | undefined> {
  const metrics = isCrashed ? undefined : await within(cdp.send("Page.getLayoutMetrics"), metricsMs, undefined);
  return metrics && { x: metrics.cssVisualViewport.pageX, y: metrics.cssVisualViewport.pageY };
}
