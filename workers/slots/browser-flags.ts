import type { BrowserRuntime } from "../../src/platform/browser-paths.ts";

/**
 * The second layer behind the network namespace, and the only one where the kernel refuses namespaces.
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

/**
 * Calls that Chromium makes for itself and that Playwright's own flags leave on.
 * Not `--disable-crashpad-for-testing`: it saves full Chromium two processes, but then the first navigation is aborted
 * (seen with 156).
 */
const QUIET_FLAGS = [
  "--disable-client-side-phishing-detection",
  "--disable-domain-reliability",
  "--safebrowsing-disable-auto-update",
  "--disable-crash-reporter",
  "--no-pings",
  "--disable-features=AutofillServerCommunication",
  // `--disable-component-update` leaves two calls at every start; an address that nobody may call takes them.
  "--component-updater=url-source=http://127.0.0.1:1/",
];

/**
 * What Chromium 156 does for nobody. Full Chromium loads two pages of its address bar's popup in a renderer of their own:
 * 1.3 s of CPU and 50 MB. The network service's own process has no sandbox on Linux, so it keeps nothing in: inside the
 * browser's it saves 60 ms of CPU, 13 MB and a tenth of a launch.
 */
const THRIFTY_FLAGS = [
  "--disable-features=WebUIOmniboxPopup,WebUIOmniboxAimPopup",
  "--enable-features=NetworkServiceInProcess2",
];

/** Gives the flags of a browser in a slot, besides Playwright's own. */
export function browserFlags(runtime: BrowserRuntime, relayPort: number): string[] {
  const newHeadless = runtime === "chromium" ? ["--headless=new"] : [];
  return [...newHeadless, ...egressFlags(relayPort), ...QUIET_FLAGS, ...THRIFTY_FLAGS];
}
