import type { BrowserRuntime } from "../../src/platform/browsers/browser-paths.ts";
import { type CaptureExtension, captureFlags } from "./capture-extension.ts";
import type { Sandbox } from "./confinement.ts";

/** What a browser's flags depend on. */
export interface FlagWish {
  readonly runtime: BrowserRuntime;
  readonly sandbox: Sandbox;
  /** Where the relay listens on the loopback that the browser sees. */
  readonly relayPort: number;
  /** Where it keeps its files; without it headless shell keeps none. */
  readonly directory: string | undefined;
  /** The extension that it is to have. */
  readonly extension?: CaptureExtension | undefined;
  /** Flags besides our own. */
  readonly extra?: readonly string[] | undefined;
}

/** Chromium obeys the last list of features alone: several become one. */
const featuresFlag = /^--(enable|disable)-features=(.*)$/;

/**
 * The second layer behind the network namespace, and the only one where the operator does without namespaces.
 * Without `<-loopback>` pages reach loopback beside the proxy. Each runtime obeys only one of the two spellings of the
 * WebRTC policy: headless shell 156 the first, full Chromium 156 the second. QUIC would leave over UDP.
 */
function egressFlags(relayPort: number): string[] {
  return [
    `--proxy-server=http://127.0.0.1:${relayPort}`,
    "--proxy-bypass-list=<-loopback>",
    "--force-webrtc-ip-handling-policy=disable_non_proxied_udp",
    "--webrtc-ip-handling-policy=disable_non_proxied_udp",
    "--disable-quic",
  ];
}

/** How pages are shown where there is no screen: no scroll bars in pictures, no sound, and a mouse. */
const headlessFlags = [
  "--hide-scrollbars",
  "--mute-audio",
  "--force-color-profile=srgb",
  "--enable-unsafe-swiftshader",
  "--blink-settings=primaryHoverType=2,availableHoverTypes=2,primaryPointerType=4,availablePointerTypes=4",
];

/** A page runs as fast when nobody looks at it, may open windows without a person, and is not held back when it is busy. */
const unattendedFlags = [
  "--allow-pre-commit-input",
  "--disable-back-forward-cache",
  "--disable-background-timer-throttling",
  "--disable-backgrounding-occluded-windows",
  "--disable-hang-monitor",
  "--disable-ipc-flooding-protection",
  "--disable-popup-blocking",
  "--disable-prompt-on-repost",
  "--disable-renderer-backgrounding",
];

/**
 * What a browser does for its owner, and calls that it makes for itself.
 * Not `--disable-crashpad-for-testing`: it saves full Chromium two processes, but then the first navigation is aborted
 * (seen with 156).
 */
const quietFlags = [
  "--disable-background-networking",
  "--disable-breakpad",
  "--disable-client-side-phishing-detection",
  "--disable-component-extensions-with-background-pages",
  "--disable-component-update",
  // `--disable-component-update` leaves two calls at every start; an address that nobody may call takes them.
  "--component-updater=url-source=http://127.0.0.1:1/",
  "--disable-crash-reporter",
  "--disable-default-apps",
  "--disable-dev-shm-usage",
  "--disable-domain-reliability",
  "--disable-field-trial-config",
  "--disable-search-engine-choice-screen",
  "--disable-sync",
  "--metrics-recording-only",
  "--no-default-browser-check",
  "--no-first-run",
  "--no-pings",
  "--no-service-autorun",
  "--password-store=basic",
  "--safebrowsing-disable-auto-update",
];

/**
 * Pictures are taken of a surface of their own. The network service's own process has no sandbox on Linux, so it keeps
 * nothing in: inside the browser's it saves 60 ms of CPU, 13 MB and a tenth of a launch.
 */
const enabledFeatures = ["CDPScreenshotNewSurface", "SkipListAccountsWithoutGaiaCookies", "NetworkServiceInProcess2"];

const disabledFeatures = [
  // Calls that a browser makes for itself.
  "AimEnabled",
  "AutofillServerCommunication",
  "MediaRouter",
  "NetworkTimeServiceQuerying",
  "OptimizationHints",
  "PreconnectToSearch",
  // An address stays what the client has asked for.
  "HttpsFirstBalancedModeAutoEnable",
  "HttpsUpgrades",
  // What changes when a document is left or shown, and who may read what it stores.
  "AvoidUnnecessaryBeforeUnloadCheckSync",
  "DestroyProfileOnBrowserClose",
  "PaintHolding",
  // A page in place of one that hangs or has crashed is not to share its renderer.
  "ProcessPerSiteUpToMainFrameThreshold",
  "ThirdPartyStoragePartitioning",
  "LensOverlay",
  // Full Chromium 156 loads two pages of its address bar's popup in a renderer of their own: 1.3 s of CPU and 50 MB.
  "WebUIOmniboxAimPopup",
  "WebUIOmniboxPopup",
];

/** Gives all flags of a browser in a slot, which is driven over a pipe and begins with one blank page. */
export function browserFlags(wish: FlagWish): string[] {
  const { runtime, sandbox, relayPort, directory, extension, extra = [] } = wish;
  const features: Record<string, string[]> = { enable: [...enabledFeatures], disable: [...disabledFeatures] };
  for (const flag of extra) {
    const [, verb = "", names = ""] = featuresFlag.exec(flag) ?? [];
    features[verb]?.push(names);
  }
  return [
    runtime === "chromium" ? "--headless=new" : "--headless",
    ...headlessFlags,
    ...unattendedFlags,
    ...quietFlags,
    ...(extension ? captureFlags(extension) : ["--disable-extensions"]),
    ...egressFlags(relayPort),
    ...(sandbox === "none" ? ["--no-sandbox"] : []),
    ...(directory === undefined ? [] : [`--user-data-dir=${directory}`]),
    ...extra.filter((flag) => !featuresFlag.test(flag)),
    `--enable-features=${features.enable}`,
    `--disable-features=${features.disable}`,
    "--remote-debugging-pipe",
    "about:blank",
  ];
}
