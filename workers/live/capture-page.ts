import { captureScript } from "../../src/gen/injected/capture-script.ts";
import type { CdpSession } from "../cdp/cdp-session.ts";
import type { Targets } from "../cdp/targets.ts";
import type * as capture from "../injected/capture-script.ts";
import type { HiddenPage } from "../isolation/hidden-page.ts";

/** The browser with the capture extension. */
export interface CaptureBrowser {
  readonly browserSession: CdpSession;
  readonly targets: Targets;
}

type CaptureScript = typeof capture;
type CaptureFunction = Exclude<keyof CaptureScript, "ended">;

/** The page of the capture extension. Open only while the session is published. */
export class CapturePage implements AsyncDisposable {
  /** Resolves with the reason when capturing has ended. */
  readonly ended: Promise<string>;
  readonly #browser: CdpSession;
  readonly #session: CdpSession;
  readonly #targetId: string;

  private constructor(browser: CdpSession, session: CdpSession, targetId: string) {
    this.#browser = browser;
    this.#session = session;
    this.#targetId = targetId;
    this.ended = this.#evaluate<string>("capture.ended").catch((error: Error) => error.message);
  }

  /** Opens the page as a hidden target, which is not shown as a tab. */
  static async open({ browserSession, targets }: CaptureBrowser, page: HiddenPage): Promise<CapturePage> {
    const tabs = () => browserSession.send("Target.getTargets", { filter: [{ type: "tab" }] });
    const { targetId, session } = await page.open(async (hide) => {
      const before = new Set((await tabs()).targetInfos.map((tab) => tab.targetId));
      const { targetId } = await browserSession.send("Target.createTarget", { url: "about:blank", hidden: true });
      hide(targetId);
      const session = targets.sessionOf(targetId);
      if (!session) throw new Error("the browser opened a page without announcing its target");
      await session.send("Page.navigate", { url: page.address });
      // Visible tabs belong to a window and have embedder data.
      const isOurs = (tab: object & { targetId: string }) => !before.has(tab.targetId) && !("embedderData" in tab);
      for (const tab of (await tabs()).targetInfos) if (isOurs(tab)) hide(tab.targetId);
      return { targetId, session };
    });
    const expression = `globalThis.capture = ${captureScript}; undefined`;
    const { exceptionDetails } = await session.send("Runtime.evaluate", { expression });
    if (exceptionDetails) throw new Error(`failed to start the capture: ${exceptionDetails.exception?.description}`);
    return new CapturePage(browserSession, session, targetId);
  }

  /** Calls a function of the capture script in the page. */
  call<Name extends CaptureFunction>(
    name: Name,
    argument: Parameters<CaptureScript[Name]>[0],
  ): Promise<Awaited<ReturnType<CaptureScript[Name]>>> {
    return this.#evaluate(`capture.${name}(${JSON.stringify(argument)})`);
  }

  /** Closes the page and its renderer. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.#browser.send("Target.closeTarget", { targetId: this.#targetId }).catch(() => undefined);
  }

  async #evaluate<Value>(expression: string): Promise<Value> {
    const how = { expression, awaitPromise: true, returnByValue: true };
    const { result, exceptionDetails } = await this.#session.send("Runtime.evaluate", how);
    if (exceptionDetails) throw new Error(exceptionDetails.exception?.description ?? exceptionDetails.text);
    return result.value;
  }
}
