import { checkScript } from "../../src/gen/injected/check-script.ts";
import type { CdpSession } from "../cdp/cdp-session.ts";
import type { DocumentReport } from "../injected/check-script.ts";
import { ownWorld } from "../pages/own-world.ts";

/** Milliseconds after which the browser ends the script: it takes 1 on an ordinary page. */
const scriptMs = 500;

/**
 * Looks at the main document of a page, whose main frame goes by the name of its target, from a world of its own: now, or
 * when it has loaded. Asked for ahead, the report comes with the load, and not two rounds to a busy renderer later.
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
  if (exceptionDetails) throw new Error(`the document cannot be described: ${exceptionDetails.text}`);
  return result.value;
}
