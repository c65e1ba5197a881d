import { Failure, fail } from "../../../src/platform/errors.ts";
import { isTargetClosed } from "../../cdp/target-faults.ts";
import { shownAddress } from "../../pages/shown-text.ts";
import { closedFailure, crashedFailure } from "../../pages/tab.ts";

const crashed = /Target crashed/;
const netErrorPattern = /net::(ERR_[A-Z0-9_]+)/;

/** Turns what was thrown while something was done to a page into the failure that the client sees. */
export function browserFailure(thrown: unknown): Failure {
  return pageFailure(thrown) ?? fail("driver-error", {}, { detail: "the browser could not do it", cause: thrown });
}

/** Recognises failures of the page as a whole: it has crashed, gone or cannot be reached. */
export function pageFailure(thrown: unknown): Failure | undefined {
  if (thrown instanceof Failure) return thrown;
  const message = messageOf(thrown);
  if (crashed.test(message)) return crashedFailure();
  const netError = netErrorOf(thrown);
  if (netError !== undefined) return netFailure(netError);
  return isTargetClosed(thrown) ? closedFailure() : undefined;
}

/** What is answered to a page that cannot be reached; where the session's proxy is at fault, with what it did. */
export function netFailure(
  netError: string,
  { url, proxyFault }: { url?: string; proxyFault?: string | undefined } = {},
): Failure {
  const place = url === undefined ? "" : ` at ${shownAddress(url).slice(0, 200)}`;
  const why = proxyFault === undefined ? `${netError}${place}` : `the session's proxy ${proxyFault}`;
  return fail("driver-error", { net_error: netError }, { detail: `the page cannot be reached: ${why}` });
}

/** Chromium's name for why a load failed, if that is what was thrown. */
export function netErrorOf(thrown: unknown): string | undefined {
  return netErrorPattern.exec(messageOf(thrown))?.[1];
}

/** What was said of a failure. */
export function messageOf(thrown: unknown): string {
  return thrown instanceof Error ? thrown.message : String(thrown);
}
