import type { Browser, BrowserContext, CDPSession } from "playwright-core";
import { type BrowserWire, tapWire, type WireMessage } from "./browser-wire.ts";
import type { DeviceIdentity } from "./device-identity.ts";

const OVERRIDE = "Emulation.setUserAgentOverride";
const RESUME = "Runtime.runIfWaitingForDebugger";

/** What each browser wears. */
const worn = new WeakMap<Browser, { identity: DeviceIdentity }>();

/**
 * Makes whatever a browser opens from now on say the same of its device: popups, frames and workers, from their first
 * script on. Playwright's own override knows nothing of client hints, and of workers that pages share nothing at all.
 * A browser that was launched ahead may be dressed again, as another device.
 */
export function dressBrowser(browser: Browser, identity: DeviceIdentity): void {
  const before = worn.get(browser);
  if (before) {
    before.identity = identity;
    return;
  }
  const dress = { identity };
  worn.set(browser, dress);
  tapWire(browser, (wire) => ({
    outgoing(command) {
      if (command.method === OVERRIDE) return { ...command, params: overrideOf(dress.identity) };
      if (command.method === RESUME) dressTarget(wire, dress.identity, command.sessionId);
      return command;
    },
    incoming(event) {
      const sessionId = sharedWorkerOf(event);
      if (sessionId === undefined) return true;
      // Playwright has no use for it and would let it go, and our override with it.
      dressTarget(wire, dress.identity, sessionId);
      wire.send({ method: RESUME, sessionId });
      return false;
    },
  }));
}

/** Makes the pages of a context say the same of their device from their next documents on, the one that is open too. */
export async function dressPages(context: BrowserContext, open: CDPSession, identity: DeviceIdentity): Promise<void> {
  await Promise.all([
    open.send(OVERRIDE, overrideOf(identity)),
    // Scripts of a session of ours would not outlive the page's move to another process.
    identity.clientHints ? undefined : context.addInitScript({ content: scriptOf(identity) }),
  ]);
}

/** Sends what a target has to know before it runs. */
function dressTarget(wire: BrowserWire, identity: DeviceIdentity, sessionId: string | undefined): void {
  if (sessionId === undefined) return;
  wire.send({ method: OVERRIDE, params: { ...overrideOf(identity) }, sessionId });
  wire.send({ method: "Runtime.evaluate", params: { expression: scriptOf(identity) }, sessionId });
}

function overrideOf({ userAgent, acceptLanguage, platform, clientHints }: DeviceIdentity) {
  // Without metadata the browser sends no hints.
  return { userAgent, acceptLanguage, platform, ...(clientHints && { userAgentMetadata: clientHints }) };
}

function sharedWorkerOf({ method, params }: WireMessage): string | undefined {
  if (method !== "Target.attachedToTarget") return undefined;
  const { sessionId, targetInfo } = params as { sessionId: string; targetInfo: { type: string } };
  return targetInfo.type === "shared_worker" ? sessionId : undefined;
}

function scriptOf(identity: DeviceIdentity): string {
  return `(${dressNavigator})(${JSON.stringify(identity)})`;
}

/**
 * Runs in a document or a worker before its own scripts. The browser's override does not reach all of a worker's
 * navigator, and leaves an interface for client hints, with nothing in it, on devices that have none.
 */
function dressNavigator({ userAgent, acceptLanguage, platform, clientHints }: DeviceIdentity): void {
  const prototype = Object.getPrototypeOf(navigator);
  const says = (name: string, value: unknown) =>
    Object.defineProperty(prototype, name, { get: () => value, configurable: true, enumerable: true });
  if (typeof document === "undefined") {
    says("userAgent", userAgent);
    says("appVersion", userAgent.slice(userAgent.indexOf("/") + 1));
    says("platform", platform);
    says("language", acceptLanguage);
    says("languages", Object.freeze([acceptLanguage]));
  }
  if (!clientHints) {
    Reflect.deleteProperty(prototype, "userAgentData");
    Reflect.deleteProperty(globalThis, "NavigatorUAData");
  }
}
