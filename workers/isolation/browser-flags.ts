import type { BrowserRuntime } from "../../src/platform/browsers/browser-paths.ts";
import { type CaptureExtension, captureFlags } from "./capture-extension.ts";
import type { ChromiumSandbox } from "./confinement.ts";

/** Inputs of a browser's command line. */
export interface FlagOptions {
  readonly runtime: BrowserRuntime;
  readonly sandbox: ChromiumSandbox;
  /** Port of the relay on the browser's loopback interface. */
  readonly relayPort: number;
  /** User data directory. Without a directory, headless shell stores no files. */
  readonly directory: string | undefined;
  readonly extension?: CaptureExtension | undefined;
  readonly extra?: readonly string[] | undefined;
}

/** Matches a flag with a list of features. Lists are merged, because Chromium applies only the last list. */
const featuresFlag = /^--(enable|disable)-features=(.*)$/;

/**
 * Egress restrictions in addition to the network namespace. With ISOLATION=flags there are no others. Without
 * `<-loopback>`, pages could bypass the proxy for loopback addresses. Each runtime honors only one spelling of the
 * WebRTC policy: headless shell 156 the first, full Chromium 156 the second. QUIC would bypass the proxy over UDP.
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

/** Rendering without a screen: no scroll bars in screenshots, no sound, and a mouse as the pointer. */
const headlessFlags = [
  "--hide-scrollbars",
  "--mute-audio",
  "--force-color-profile=srgb",
  "--enable-unsafe-swiftshader",
  "--blink-settings=primaryHoverType=2,availableHoverTypes=2,primaryPointerType=4,availablePointerTypes=4",
];

/** Without this flag, a remote-controlled browser sets `navigator.webdriver`, and no override could clear it. */
const automationFlag = "--disable-blink-features=AutomationControlled";

/**
 * Disables throttling of hidden or busy pages, the back/forward cache, the popup blocker, and prompts about hung pages
 * and resubmitted forms. Allows input before a page's first frame.
 */
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
 * Disables features for desktop users and the browser's own network requests. `--disable-crashpad-for-testing` would
 * save full Chromium two processes, but aborts the first navigation (observed with Chromium 156).
 */
const quietFlags = [
  "--disable-background-networking",
  "--disable-breakpad",
  "--disable-client-side-phishing-detection",
  "--disable-component-extensions-with-background-pages",
  "--disable-component-update",
  // Despite `--disable-component-update`, two requests per start remain. They are sent to an unreachable address.
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
 * Screenshots use a separate surface. The network service runs in the browser process. On Linux a separate process
 * would have no sandbox, and would take 60 ms of CPU, 13 MB and 10 % of the launch time.
 */
const enabledFeatures = ["CDPScreenshotNewSurface", "SkipListAccountsWithoutGaiaCookies", "NetworkServiceInProcess2"];

const disabledFeatures = [
  // Network requests of the browser itself.
  "AimEnabled",
  "AutofillServerCommunication",
  "LensOverlay",
  "MediaRouter",
  "NetworkTimeServiceQuerying",
  "OptimizationHints",
  "PreconnectToSearch",
  // Disabled, because upgrades to https would change the scheme that the client requested.
  "HttpsFirstBalancedModeAutoEnable",
  "HttpsUpgrades",
  // Changes to navigation, painting and storage partitioning.
  "AvoidUnnecessaryBeforeUnloadCheckSync",
  "DestroyProfileOnBrowserClose",
  "PaintHolding",
  "ThirdPartyStoragePartitioning",
  // Disabled, because a page that replaces a hung or crashed page must not share its renderer.
  "ProcessPerSiteUpToMainFrameThreshold",
  // Full Chromium 156 would load two address bar popup pages in a separate renderer: 1.3 s of CPU and 50 MB.
  "WebUIOmniboxAimPopup",
  "WebUIOmniboxPopup",
];

/** Returns the command line of a browser that is controlled over a pipe and starts with one blank page. */
export function browserFlags(options: FlagOptions): string[] {
  const { runtime, sandbox, relayPort, directory, extension, extra = [] } = options;
  const features: Record<string, string[]> = { enable: [...enabledFeatures], disable: [...disabledFeatures] };
  for (const flag of extra) {
    const [, verb = "", names = ""] = featuresFlag.exec(flag) ?? [];
    features[verb]?.push(names);
  }
  return [
    runtime === "chromium" ? "--headless=new" : "--headless",
    ...headlessFlags,
    automationFlag,
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
