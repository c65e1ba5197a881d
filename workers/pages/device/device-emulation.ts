import type { AttachedTarget, OwnTarget, Targets } from "../../cdp/targets.ts";
import type { Device } from "./device.ts";
import { type DeviceIdentity, makeIdentity } from "./device-identity.ts";
import { blockResources } from "./resource-block.ts";

/** Media features of an emulated device, independent of the machine's settings. */
const media = [
  { name: "prefers-color-scheme", value: "light" },
  { name: "prefers-reduced-motion", value: "no-preference" },
  { name: "forced-colors", value: "none" },
  { name: "prefers-contrast", value: "no-preference" },
];

/** Default fonts, fixed because the two runtimes have different defaults. */
const fonts = {
  standard: "Times New Roman",
  fixed: "Monospace",
  serif: "Times New Roman",
  sansSerif: "Arial",
  cursive: "Comic Sans MS",
  fantasy: "Impact",
};

/** Commands sent to a target, which need not be awaited. */
type Commands = Promise<unknown>[];

type Session = AttachedTarget["session"];

/** Size of a page in CSS pixels. */
interface Size {
  readonly width: number;
  readonly height: number;
}

/** Windows opened by pages, which keep their sizes across device changes. */
interface Windows {
  /** Sizes of known pages. Undefined for a page opened without a size. */
  readonly sizes: WeakMap<OwnTarget, Size | undefined>;
  /** By opener, the requested sizes of popups that have not opened yet. */
  readonly popups: Map<string, (Size | undefined)[]>;
}

const windowsOf = new WeakMap<Targets, Windows>();

interface Outfit {
  readonly device: Device;
  readonly identity: DeviceIdentity;
  readonly windows: Windows;
  /** Called with the kind of each request that the device blocks. */
  readonly onBlocked: (kind: string) => void;
}

/**
 * Emulates a device for all open and future targets of a browser, from their first script on. Pages, popups and frames
 * get the device's screen and identity, workers only the identity.
 *
 * Can be called again with another device. Rejects if an open target cannot be changed.
 */
export async function emulateDevice(
  targets: Targets,
  device: Device,
  browserVersion: string,
  onBlocked: (kind: string) => void = () => undefined,
): Promise<void> {
  const identity = makeIdentity(device.archetype, browserVersion, device.locale);
  const windows = windowsOf.get(targets) ?? { sizes: new WeakMap(), popups: new Map() };
  windowsOf.set(targets, windows);
  const outfit: Outfit = { device, identity, windows, onBlocked };
  targets.prepareWith({
    own: async (target) => {
      emulate(target, outfit).catch(() => undefined);
      // The order of commands ensures that they precede the first script. Only the window size needs an answer first.
      // Nothing else may be awaited: a paused worker does not answer.
      if (target.info.type === "page") await target.session.send("Browser.getWindowForTarget");
    },
    shared: (target) => void emulateShared(target, outfit).catch(() => undefined),
  });
  await Promise.all([
    ...[...targets.own].map((target) => emulate(target, outfit)),
    ...[...targets.shared].map((target) => emulateShared(target, outfit)),
  ]);
}

async function emulate(target: OwnTarget, outfit: Outfit): Promise<void> {
  await Promise.all(commandsFor(target, outfit));
}

function commandsFor(target: OwnTarget, outfit: Outfit): Commands {
  const { info, session } = target;
  switch (info.type) {
    case "page":
      return [
        ...showScreen(session, outfit.device, sizeOf(target, outfit)),
        ...showPosition(session, outfit.device),
        ...emulateInDocument(session, outfit),
        ...blockResources(session, outfit.device.blockedTypes, outfit.onBlocked),
      ];
    case "iframe":
      return [
        ...emulateInDocument(session, outfit),
        ...blockResources(session, outfit.device.blockedTypes, outfit.onBlocked),
      ];
    case "worker":
    case "service_worker":
    case "shared_worker":
      return [identify(session, outfit), session.send("Runtime.evaluate", { expression: scriptOf(outfit.identity) })];
    default:
      return [];
  }
}

/**
 * Every session of a page overrides the page's identity when the page changes process, and the newest session wins. A
 * session without overrides would reset the platform (seen with Chromium 156).
 */
async function emulateShared({ info, session }: AttachedTarget, outfit: Outfit): Promise<void> {
  if (info.type === "page" || info.type === "iframe") await identify(session, outfit);
}

/** Returns the size that a page was opened with, if any. Also subscribes to the popups that the page opens. */
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

/** Parses the features of `window.open`. A window has its own size only if both sides are given. */
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
    // `Page.windowOpen` events require this command.
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

/** Sets the position of the page and its frames. */
function showPosition(session: Session, { geolocation }: Device): Commands {
  return geolocation ? [session.send("Emulation.setGeolocationOverride", geolocation)] : [];
}

/** Sets the window size, which pages can read. */
async function fitWindow(session: Session, { width, height }: Size): Promise<void> {
  const { windowId, bounds } = await session.send("Browser.getWindowForTarget");
  if (bounds.width === width && bounds.height === height) return;
  await session.send("Browser.setWindowBounds", { windowId, bounds: { width, height } });
}

function emulateInDocument(session: Session, outfit: Outfit): Commands {
  const { locale, timezone, archetype, webdriver } = outfit.device;
  return [
    // Disabling touch emulation while it is disabled would remove the mouse from popups and frames.
    ...(archetype.hasTouch ? [session.send("Emulation.setTouchEmulationEnabled", { enabled: true })] : []),
    session.send("Emulation.setEmulatedMedia", { features: media }),
    session.send("Emulation.setAutomationOverride", { enabled: webdriver }),
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
    // Without metadata the browser sends no client hints.
    ...(clientHints && { userAgentMetadata: clientHints }),
  });
}

/** Removes `navigator.userAgentData` from documents if the device has no client hints. */
function hideHints(session: Session, identity: DeviceIdentity): Commands {
  if (identity.clientHints) return [];
  const source = scriptOf(identity);
  return [
    // Without this command, the browser drops the script.
    session.send("Page.enable"),
    session.send("Page.addScriptToEvaluateOnNewDocument", { source, runImmediately: true }),
  ];
}

/**
 * Ignores that a setting is already in effect: fonts can be set once per page, and locale and time zone are shared by a
 * process.
 */
function unlessSet(error: unknown): void {
  if (!/already in effect|can only be set once/.test(String(error))) throw error;
}

function scriptOf(identity: DeviceIdentity): string {
  return `(${emulateNavigator})(${JSON.stringify(identity)})`;
}

/**
 * Runs in a document or worker before its own scripts. The browser's override does not cover a worker's whole
 * navigator. The override also leaves an empty client hints interface on devices without client hints.
 */
function emulateNavigator({ userAgent, acceptLanguage, platform, clientHints }: DeviceIdentity): void {
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
