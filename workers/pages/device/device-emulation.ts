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

/** Default fonts. Set explicitly, because the runtimes `chromium` and `headless-shell` have different defaults. */
const fonts = {
  standard: "Times New Roman",
  fixed: "Monospace",
  serif: "Times New Roman",
  sansSerif: "Arial",
  cursive: "Comic Sans MS",
  fantasy: "Impact",
};

/** Responses to the commands that were sent to a target. */
type Commands = Promise<unknown>[];

type Session = AttachedTarget["session"];

/** Size of a page in CSS pixels. */
interface Size {
  readonly width: number;
  readonly height: number;
}

/** Sizes of windows opened by pages. The windows keep their sizes across device changes. */
interface Windows {
  /** Sizes of known pages. The value is undefined for a page opened without a size. */
  readonly sizes: WeakMap<OwnTarget, Size | undefined>;
  /** By opener, the requested sizes of popups that have not opened yet. */
  readonly popups: Map<string, (Size | undefined)[]>;
}

const windowsOf = new WeakMap<Targets, Windows>();

interface Emulation {
  readonly device: Device;
  readonly identity: DeviceIdentity;
  readonly windows: Windows;
  /** Called with the kind of each request that the device blocks. */
  readonly onBlocked: (kind: string) => void;
}

/**
 * Emulates a device for all open and future targets of a browser. Future targets are changed before their first script
 * runs. Pages, popups and frames get the device's screen and identity, web workers only the identity.
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
  const emulation: Emulation = { device, identity, windows, onBlocked };
  targets.prepareWith({
    own: async (target) => {
      emulate(target, emulation).catch(() => undefined);
      // The browser handles commands in order, so the commands of `emulate` precede the first script without being
      // awaited. Only `fitWindow` must have received its first response. Nothing else may be awaited, because a paused
      // web worker does not answer.
      if (target.info.type === "page") await target.session.send("Browser.getWindowForTarget");
    },
    shared: (target) => void emulateShared(target, emulation).catch(() => undefined),
  });
  await Promise.all([
    ...[...targets.own].map((target) => emulate(target, emulation)),
    ...[...targets.shared].map((target) => emulateShared(target, emulation)),
  ]);
}

async function emulate(target: OwnTarget, emulation: Emulation): Promise<void> {
  await Promise.all(commandsFor(target, emulation));
}

function commandsFor(target: OwnTarget, emulation: Emulation): Commands {
  const { info, session } = target;
  switch (info.type) {
    case "page":
      return [
        ...overrideScreen(session, emulation.device, sizeOf(target, emulation)),
        ...overridePosition(session, emulation.device),
        ...emulateInDocument(session, emulation),
        ...blockResources(session, emulation.device.blockedTypes, emulation.onBlocked),
      ];
    case "iframe":
      return [
        ...emulateInDocument(session, emulation),
        ...blockResources(session, emulation.device.blockedTypes, emulation.onBlocked),
      ];
    case "worker":
    case "service_worker":
    case "shared_worker":
      return [
        overrideIdentity(session, emulation),
        session.send("Runtime.evaluate", { expression: scriptOf(emulation.identity) }),
      ];
    default:
      return [];
  }
}

/**
 * When a page changes process, every session of the page overrides its identity, and the newest session wins. A session
 * without overrides would therefore reset the platform (seen with Chromium 156).
 */
async function emulateShared({ info, session }: AttachedTarget, emulation: Emulation): Promise<void> {
  if (info.type === "page" || info.type === "iframe") await overrideIdentity(session, emulation);
}

/** Returns the size that a page was opened with, if any. Also subscribes to the popups that the page opens. */
function sizeOf(target: OwnTarget, { windows: { sizes, popups } }: Emulation): Size | undefined {
  if (sizes.has(target)) return sizes.get(target);
  const { info, session } = target;
  session.on("Page.windowOpen", ({ windowFeatures }) => {
    const requested = popups.get(info.targetId) ?? [];
    requested.push(readSize(windowFeatures));
    popups.set(info.targetId, requested);
  });
  const size = info.openerId === undefined ? undefined : popups.get(info.openerId)?.shift();
  sizes.set(target, size);
  return size;
}

/** Parses the features of `window.open`. A window has its own size only if both width and height are given. */
function readSize(features: readonly string[]): Size | undefined {
  const read = (name: string) =>
    Number.parseInt(features.find((each) => each.startsWith(name))?.slice(name.length) ?? "", 10);
  const size = { width: read("width="), height: read("height=") };
  return size.width > 0 && size.height > 0 ? size : undefined;
}

function overrideScreen(session: Session, { viewport, archetype }: Device, own: Size | undefined): Commands {
  const { width, height } = own ?? viewport;
  const screen = own ?? archetype.screen ?? viewport;
  const isUpright = archetype.isMobile && screen.width <= screen.height;
  return [
    // `Page.windowOpen` events require this command.
    session.send("Page.enable"),
    session.send("Emulation.setFocusEmulationEnabled", { enabled: true }),
    session.send("Page.setFontFamilies", { fontFamilies: fonts }).catch(ignoreAlreadySet),
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

/** Sets the geolocation of the page and its frames. */
function overridePosition(session: Session, { geolocation }: Device): Commands {
  return geolocation ? [session.send("Emulation.setGeolocationOverride", geolocation)] : [];
}

/** Sets the window size, which pages can read. */
async function fitWindow(session: Session, { width, height }: Size): Promise<void> {
  const { windowId, bounds } = await session.send("Browser.getWindowForTarget");
  if (bounds.width === width && bounds.height === height) return;
  await session.send("Browser.setWindowBounds", { windowId, bounds: { width, height } });
}

function emulateInDocument(session: Session, emulation: Emulation): Commands {
  const { locale, timezone, archetype, webdriver } = emulation.device;
  return [
    // Not sent with `enabled: false`: that would remove the mouse from popups and frames.
    ...(archetype.hasTouch ? [session.send("Emulation.setTouchEmulationEnabled", { enabled: true })] : []),
    session.send("Emulation.setEmulatedMedia", { features: media }),
    session.send("Emulation.setAutomationOverride", { enabled: webdriver }),
    overrideIdentity(session, emulation),
    session.send("Emulation.setLocaleOverride", { locale }).catch(ignoreAlreadySet),
    session.send("Emulation.setTimezoneOverride", { timezoneId: timezone }).catch(ignoreAlreadySet),
    ...hideClientHints(session, emulation.identity),
  ];
}

function overrideIdentity(session: Session, { identity }: Emulation): Promise<unknown> {
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
function hideClientHints(session: Session, identity: DeviceIdentity): Commands {
  if (identity.clientHints) return [];
  const source = scriptOf(identity);
  return [
    // Without this command, the browser ignores the script.
    session.send("Page.enable"),
    session.send("Page.addScriptToEvaluateOnNewDocument", { source, runImmediately: true }),
  ];
}

/**
 * Ignores that a setting is already in effect: fonts can be set once per page, and all pages of a process share locale
 * and time zone.
 */
function ignoreAlreadySet(error: unknown): void {
  if (!/already in effect|can only be set once/.test(String(error))) throw error;
}

function scriptOf(identity: DeviceIdentity): string {
  return `(${emulateNavigator})(${JSON.stringify(identity)})`;
}

/**
 * Runs in a document or web worker before the scripts of the page. The browser's override does not cover all of a web
 * worker's `navigator`, and leaves an empty client hints interface on devices without client hints.
 */
function emulateNavigator({ userAgent, acceptLanguage, platform, clientHints }: DeviceIdentity): void {
  const prototype = Object.getPrototypeOf(navigator);
  const define = (name: string, value: unknown) =>
    Object.defineProperty(prototype, name, { get: () => value, configurable: true, enumerable: true });
  if (typeof document === "undefined") {
    define("userAgent", userAgent);
    define("appVersion", userAgent.slice(userAgent.indexOf("/") + 1));
    define("platform", platform);
    define("language", acceptLanguage);
    define("languages", Object.freeze([acceptLanguage]));
  }
  if (!clientHints) {
    Reflect.deleteProperty(prototype, "userAgentData");
    Reflect.deleteProperty(globalThis, "NavigatorUAData");
  }
}
