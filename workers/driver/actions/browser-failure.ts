import { Failure, fail } from "../../../src/platform/errors.ts";
import { isTargetClosed } from "../../cdp/target-faults.ts";
import { cutText } from "../../injected/plain-text.ts";
import { shownAddress } from "../../pages/shown-text.ts";
import { closedFailure, crashedFailure } from "../../pages/tab.ts";

const crashed = /Target crashed/;
const netErrorPattern = /net::(ERR_[A-Z0-9_]+)/;

/** Converts an error of a page operation to the failure that the client receives. */
export function browserFailure(thrown: unknown): Failure {
  return (
    pageFailure(thrown) ??
    fail(
      "driver-error",
      {},
      { detail: "the browser failed to run the command: observe the page, and try again", cause: thrown },
    )
  );
}

/**
 * Returns a failure as it is. Converts an error that means that the page has crashed or closed, or cannot be reached.
 * Returns undefined for other errors.
 */
export function pageFailure(thrown: unknown): Failure | undefined {
  if (thrown instanceof Failure) return thrown;
  const message = messageOf(thrown);
  if (crashed.test(message)) return crashedFailure();
  const netError = netErrorOf(thrown);
  if (netError !== undefined) return netFailure(netError);
  return isTargetClosed(thrown) ? closedFailure() : undefined;
}

/** Creates the failure for an unreachable page. If the session's proxy caused it, `proxyFault` describes the fault. */
export function netFailure(
  netError: string,
  { url, proxyFault }: { url?: string; proxyFault?: string | undefined } = {},
): Failure {
  const where = url === undefined ? "" : ` at ${cutText(shownAddress(url), 200)}`;
  const why =
    proxyFault === undefined
      ? `${netError}${where}: check the address, or try again`
      : `the session's proxy ${proxyFault}`;
  return fail("driver-error", { net_error: netError }, { detail: `the page cannot be reached: ${why}` });
}

/** Returns Chromium's network error name, such as `ERR_TIMED_OUT`, if the error contains one. */
export function netErrorOf(thrown: unknown): string | undefined {
  return netErrorPattern.exec(messageOf(thrown))?.[1];
}

export function messageOf(thrown: unknown): string {
  return thrown instanceof Error ? thrown.message : String(thrown);
}
