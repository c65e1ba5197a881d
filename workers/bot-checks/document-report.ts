import { checkScript } from "../../src/gen/injected/check-script.ts";
import type { CdpSession } from "../cdp/cdp-session.ts";
import type { DocumentReport } from "../injected/check-script.ts";
import { ownWorld } from "../pages/own-world.ts";

/** Script timeout in milliseconds. An ordinary page takes 1 ms. */
const scriptMs = 500;

/**
 * Describes the main document of a page from an isolated world, now or after the load event. Requesting the report
 * before the load event saves two round trips to the renderer, which is busy after the event.
 */
export async function reportDocument(cdp: CdpSession, frameId: string, when: "now" | "load"): Promise<DocumentReport> {
  const { executionContextId } = await cdp.send("Page.createIsolatedWorld", { frameId, worldName: ownWorld });
  const { result, exceptionDetails } = await cdp.send("Runtime.evaluate", {
    expression: `${checkScript}.${when === "now" ? "describeDocument" : "describeLoaded"}()`,
    contextId: executionContextId,
    awaitPromise: when === "load",
    returnByValue: true,
    timeout: scriptMs,
  });
  if (exceptionDetails) throw new Error(`failed to describe the document: ${exceptionDetails.text}`);
  return result.value;
}
