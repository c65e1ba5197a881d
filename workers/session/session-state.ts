import { create } from "@bufbuild/protobuf";
import type { PageSummary, SessionState } from "../../src/gen/pilothouse/v1/session_pb.ts";
import { PageSummarySchema, SessionStateSchema } from "../../src/gen/pilothouse/v1/session_pb.ts";
import { within } from "../../src/platform/deadline.ts";
import type { SessionPage } from "../pages/session-page.ts";
import type { SessionBrowser } from "../pool/session-browser.ts";
import { type ChallengePause, challengeMessage } from "./challenge-pause.ts";

/** How long a page may take to say how far it is scrolled; one that hangs says nothing. */
const lookMs = 500;

interface Look {
  readonly x: number;
  readonly y: number;
  readonly isLoaded: boolean;
}

/** Reads what a session shows, paused or not. Takes about half a second at most, whatever its pages do. */
export async function describeSession(browser: SessionBrowser, pause: ChallengePause): Promise<SessionState> {
  const { pages, viewport, relay, dialogDesk, downloadShelf, challengeWatch } = browser;
  const active = pages.active;
  const [summaries, look] = await Promise.all([
    Promise.all(pages.all.map((page) => summarize(page, page === active))),
    lookAt(active),
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
    loading: active.isNavigating || look?.isLoaded !== true,
    viewport,
    ...(look && { scroll: { x: look.x, y: look.y } }),
    pages: summaries,
    control: { state: "api" },
    egress: { state: relay.state, bytesSent: BigInt(sent), bytesReceived: BigInt(received) },
    dialogs: [...dialogDesk.dialogs],
    downloads: [...downloadShelf.downloads],
  });
}

async function summarize(page: SessionPage, active: boolean): Promise<PageSummary> {
  const { id, isCrashed: crashed } = page;
  const title = crashed ? "" : await page.title();
  return create(PageSummarySchema, { id, url: page.address, title, active, crashed });
}

function lookAt(page: SessionPage): Promise<Look | undefined> {
  if (page.isCrashed) return Promise.resolve(undefined);
  const asked = page.page.evaluate(() => ({ x: scrollX, y: scrollY, isLoaded: document.readyState === "complete" }));
  return within(asked, lookMs, undefined);
}
