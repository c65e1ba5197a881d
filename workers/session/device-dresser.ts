import type { Target, Targets } from "../wire/targets.ts";
import type { Device } from "./device.ts";
import { type DeviceIdentity, makeIdentity } from "./device-identity.ts";

/** What a device without a person before it shows, whatever the machine's own settings are. */
const MEDIA = [
  { name: "prefers-color-scheme", value: "light" },
  { name: "prefers-reduced-motion", value: "no-preference" },
  { name: "forced-colors", value: "none" },
  { name: "prefers-contrast", value: "no-preference" },
];

/** The two runtimes come with different ones. */
const FONTS = {
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

/**
 * Makes whatever a browser has open, and opens from now on, a device: pages, popups and frames by their size and ways,
 * and all of them, workers too, by what they say of themselves, from their first script on. A browser may be made another
 * device later. Rejects when what is open cannot be made this device.
 */
export async function wearDevice(targets: Targets, device: Device, browserVersion: string): Promise<void> {
  const identity = makeIdentity(device.archetype, browserVersion, device.locale);
  const outfit = { device, identity };
  targets.prepareWith({
    own: (target) => ignore(dress(target, outfit)),
    shared: (target) => ignore(dressShared(target, outfit)),
  });
  await Promise.all([
    ...[...targets.own].flatMap((target) => dress(target, outfit)),
    ...[...targets.shared].flatMap((target) => dressShared(target, outfit)),
  ]);
}

/** A target may be gone before it is dressed. */
function ignore(commands: Commands): void {
  for (const answer of commands) answer.catch(() => undefined);
}

interface Outfit {
  readonly device: Device;
  readonly identity: DeviceIdentity;
}

function dress({ info, session }: Target, outfit: Outfit): Commands {
  switch (info.type) {
    case "page":
      return [...showScreen(session, outfit.device), ...dressDocument(session, outfit)];
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
function dressShared({ info, session }: Target, outfit: Outfit): Commands {
  return info.type === "page" || info.type === "iframe" ? [identify(session, outfit)] : [];
}

function showScreen(session: Session, { viewport, archetype }: Device): Commands {
  const { width, height, deviceScaleFactor } = viewport;
  const screen = archetype.screen ?? { width, height };
  const isLandscape = archetype.isMobile && screen.width > screen.height;
  return [
    session.send("Emulation.setFocusEmulationEnabled", { enabled: true }),
    session.send("Page.setFontFamilies", { fontFamilies: FONTS }).catch(unlessSet),
    session.send("Emulation.setDeviceMetricsOverride", {
      mobile: archetype.isMobile,
      width,
      height,
      screenWidth: screen.width,
      screenHeight: screen.height,
      deviceScaleFactor,
      screenOrientation:
        isLandscape || !archetype.isMobile
          ? { angle: isLandscape ? 90 : 0, type: "landscapePrimary" }
          : { angle: 0, type: "portraitPrimary" },
    }),
  ];
}

function dressDocument(session: Session, outfit: Outfit): Commands {
  const { locale, timezone, archetype } = outfit.device;
  return [
    // To switch it off where it is off takes the mouse away from popups and frames.
    ...(archetype.hasTouch ? [session.send("Emulation.setTouchEmulationEnabled", { enabled: true })] : []),
    session.send("Emulation.setEmulatedMedia", { features: MEDIA }),
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
    // Without it a script is forgotten.
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
