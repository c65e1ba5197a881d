import type { OwnTarget, Target, Targets } from "../../cdp/targets.ts";
import type { Device } from "./device.ts";
import { type DeviceIdentity, makeIdentity } from "./device-identity.ts";

/** What a device without a person before it shows, whatever the machine's own settings are. */
const media = [
  { name: "prefers-color-scheme", value: "light" },
  { name: "prefers-reduced-motion", value: "no-preference" },
  { name: "forced-colors", value: "none" },
  { name: "prefers-contrast", value: "no-preference" },
];

/** The two runtimes come with different ones. */
const fonts = {
  standard: "Times New Roman",
  fixed: "Monospace",
  serif: "Times New Roman",
  sansSerif: "Arial",
  cursive: "Comic Sans MS",
  fantasy: "Impact",
};

/** What is sent to a target; its answers need not be awaited. */
type Commands = Promise<unknown>[];

type Session = Target["session"];

/** The size of a page in CSS pixels. */
interface Size {
  readonly width: number;
  readonly height: number;
}

/** The windows that pages have opened; they keep their sizes whatever device they are made, and how often. */
interface Windows {
  /** Sizes of the pages that are known; undefined for those that were opened without one. */
  readonly sizes: WeakMap<OwnTarget, Size | undefined>;
  /** By the page that opens them, sizes of the popups to come that were asked for with one. */
  readonly popups: Map<string, (Size | undefined)[]>;
}

const windowsOf = new WeakMap<Targets, Windows>();

interface Outfit {
  readonly device: Device;
  readonly identity: DeviceIdentity;
  readonly windows: Windows;
}

/**
 * Makes whatever a browser has open, and opens from now on, a device: pages, popups and frames by their size and ways,
 * and all of them, workers too, by what they say of themselves, from their first script on. A browser may be made another
 * device later. Rejects when what is open cannot be made this device.
 */
export async function wearDevice(targets: Targets, device: Device, browserVersion: string): Promise<void> {
  const identity = makeIdentity(device.archetype, browserVersion, device.locale);
  const windows = windowsOf.get(targets) ?? { sizes: new WeakMap(), popups: new Map() };
  windowsOf.set(targets, windows);
  const outfit: Outfit = { device, identity, windows };
  targets.prepareWith({
    own: async (target) => {
      dress(target, outfit).catch(() => undefined);
      // Commands come before the first script by their order, but for the window's size, which takes a question first.
      // Nothing else may be waited for: a worker answers only when it runs.
      if (target.info.type === "page") await target.session.send("Browser.getWindowForTarget");
    },
    shared: (target) => void dressShared(target, outfit).catch(() => undefined),
  });
  await Promise.all([
    ...[...targets.own].map((target) => dress(target, outfit)),
    ...[...targets.shared].map((target) => dressShared(target, outfit)),
  ]);
}

async function dress(target: OwnTarget, outfit: Outfit): Promise<void> {
  await Promise.all(commandsFor(target, outfit));
}

function commandsFor(target: OwnTarget, outfit: Outfit): Commands {
  const { info, session } = target;
  switch (info.type) {
    case "page":
      return [...showScreen(session, outfit.device, sizeOf(target, outfit)), ...dressDocument(session, outfit)];
    case "iframe":
      return dressDocument(session, outfit);
    case "worker":
    case "service_worker":
    case "shared_worker":
      return [identify(session, outfit), session.send("Runtime.evaluate", { expression: scriptOf(outfit.identity) })];
    default:
      return [];
  }
}

/**
 * Every session of a page makes it say its own when the page comes to another process, the last one made having the last
 * word: a session that knows nothing takes the device's platform from it (seen with 156).
 */
async function dressShared({ info, session }: Target, outfit: Outfit): Promise<void> {
  if (info.type === "page" || info.type === "iframe") await identify(session, outfit);
}

/** The size that a page has been opened with, or undefined; from now on it is heard how its popups are opened. */
function sizeOf(target: OwnTarget, { windows: { sizes, popups } }: Outfit): Size | undefined {
  if (sizes.has(target)) return sizes.get(target);
  const { info, session } = target;
  session.on("Page.windowOpen", ({ windowFeatures }) => {
    const asked = popups.get(info.targetId) ?? [];
    asked.push(readSize(windowFeatures));
    popups.set(info.targetId, asked);
  });
  const size = info.openerId === undefined ? undefined : popups.get(info.openerId)?.shift();
  sizes.set(target, size);
  return size;
}

/** Reads what `window.open` was told; a window has a size of its own when it is told both. */
function readSize(features: readonly string[]): Size | undefined {
  const read = (name: string) =>
    Number.parseInt(features.find((each) => each.startsWith(name))?.slice(name.length) ?? "", 10);
  const size = { width: read("width="), height: read("height=") };
  return size.width > 0 && size.height > 0 ? size : undefined;
}

function showScreen(session: Session, { viewport, archetype }: Device, own: Size | undefined): Commands {
  const { width, height } = own ?? viewport;
  const screen = own ?? archetype.screen ?? viewport;
  const isUpright = archetype.isMobile && screen.width <= screen.height;
  return [
    // Without it nothing is told of popups.
    session.send("Page.enable"),
    session.send("Emulation.setFocusEmulationEnabled", { enabled: true }),
    session.send("Page.setFontFamilies", { fontFamilies: fonts }).catch(unlessSet),
    session.send("Emulation.setDeviceMetricsOverride", {
      mobile: archetype.isMobile,
      width,
      height,
      screenWidth: screen.width,
      screenHeight: screen.height,
      deviceScaleFactor: viewport.deviceScaleFactor,
      screenOrientation: isUpright
        ? { angle: 0, type: "portraitPrimary" }
        : { angle: archetype.isMobile ? 90 : 0, type: "landscapePrimary" },
    }),
    fitWindow(session, { width, height }),
  ];
}

/** Pages are also told how large the window around them is. */
async function fitWindow(session: Session, { width, height }: Size): Promise<void> {
  const { windowId } = await session.send("Browser.getWindowForTarget");
  await session.send("Browser.setWindowBounds", { windowId, bounds: { width, height } });
}

function dressDocument(session: Session, outfit: Outfit): Commands {
  const { locale, timezone, archetype } = outfit.device;
  return [
    // To switch it off where it is off takes the mouse away from popups and frames.
    ...(archetype.hasTouch ? [session.send("Emulation.setTouchEmulationEnabled", { enabled: true })] : []),
    session.send("Emulation.setEmulatedMedia", { features: media }),
    identify(session, outfit),
    session.send("Emulation.setLocaleOverride", { locale }).catch(unlessSet),
    session.send("Emulation.setTimezoneOverride", { timezoneId: timezone }).catch(unlessSet),
    ...hideHints(session, outfit.identity),
  ];
}

function identify(session: Session, { identity }: Outfit): Promise<unknown> {
  const { userAgent, acceptLanguage, platform, clientHints } = identity;
  return session.send("Emulation.setUserAgentOverride", {
    userAgent,
    acceptLanguage,
    platform,
    // Without metadata the browser sends no hints.
    ...(clientHints && { userAgentMetadata: clientHints }),
  });
}

/** Takes the interface for client hints from documents of devices that have none. */
function hideHints(session: Session, identity: DeviceIdentity): Commands {
  if (identity.clientHints) return [];
  const source = scriptOf(identity);
  return [
    // Without it the script is forgotten.
    session.send("Page.enable"),
    session.send("Page.addScriptToEvaluateOnNewDocument", { source, runImmediately: true }),
  ];
}

/** A page takes fonts once. A process has one locale and one time zone, which another page may have set to the same. */
function unlessSet(error: unknown): void {
  if (!/already in effect|can only be set once/.test(String(error))) throw error;
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
