/** Kinds of bot checks, named by vendor or product. `generic` is a check page of an unknown vendor. */
export type ChallengeKind =
  | "cloudflare"
  | "turnstile"
  | "recaptcha"
  | "hcaptcha"
  | "datadome"
  | "perimeterx"
  | "arkose"
  | "generic";

/** A frame that shows a check if the frame is visible. */
export interface CheckFrame {
  readonly kind: ChallengeKind;
  /** Minimum size in CSS pixels. Smaller frames are sensors or badges. */
  readonly minWidth: number;
  readonly minHeight: number;
  /**
   * Selector of the fields that receive a token once the check is solved. Undefined if the frame disappears once the
   * check is solved.
   */
  readonly tokenSelector: string | undefined;
}

interface FrameRule extends CheckFrame {
  readonly host: RegExp;
  /** Matches path, query and fragment. */
  readonly address: RegExp;
  /** Matches path, query and fragment of frames that are not checks although `address` matches. */
  readonly excluded?: RegExp;
}

/**
 * Addresses of check frames: widgets that require a click, and puzzles. Invisible variants, sensors, embeds and
 * documentation are excluded.
 */
const frameRules: readonly FrameRule[] = [
  {
    kind: "turnstile",
    host: /^challenges\.cloudflare\.com$/,
    address: /^\/cdn-cgi\/challenge-platform\/.*\/turnstile\/if\//,
    minWidth: 100,
    minHeight: 40,
    tokenSelector: '[name="cf-turnstile-response"]',
  },
  {
    kind: "recaptcha",
    host: /^www\.(?:google\.com|recaptcha\.net)$/,
    address: /^\/recaptcha\/(?:api2|enterprise)\/anchor\b/,
    excluded: /[?&]size=invisible\b/,
    minWidth: 100,
    minHeight: 60,
    tokenSelector: '[name="g-recaptcha-response"]',
  },
  {
    kind: "recaptcha",
    host: /^www\.(?:google\.com|recaptcha\.net)$/,
    address: /^\/recaptcha\/(?:api2|enterprise)\/bframe\b/,
    minWidth: 200,
    minHeight: 200,
    tokenSelector: undefined,
  },
  {
    kind: "hcaptcha",
    host: /(?:^|\.)hcaptcha\.com$/,
    address: /^\/captcha\/.*[#&]frame=checkbox(?:&|$)/,
    excluded: /[#&]size=invisible\b/,
    minWidth: 100,
    minHeight: 60,
    tokenSelector: '[name="h-captcha-response"]',
  },
  {
    kind: "hcaptcha",
    host: /(?:^|\.)hcaptcha\.com$/,
    address: /^\/captcha\/.*[#&]frame=challenge(?:&|$)/,
    minWidth: 200,
    minHeight: 200,
    tokenSelector: undefined,
  },
  {
    kind: "datadome",
    host: /(?:^|\.)captcha-delivery\.com$/,
    address: /^\/(?:captcha|interstitial)\//,
    minWidth: 100,
    minHeight: 100,
    tokenSelector: undefined,
  },
  {
    kind: "perimeterx",
    host: /^captcha\.(?:px-cdn|px-cloud|perimeterx)\.net$/,
    address: /^\//,
    minWidth: 100,
    minHeight: 40,
    tokenSelector: undefined,
  },
  {
    kind: "arkose",
    host: /^(?!www\.)[a-z0-9-]+\.(?:arkoselabs|funcaptcha)\.com$/,
    address: /^\/(?:fc|v2|v3)\//,
    minWidth: 100,
    minHeight: 100,
    tokenSelector: undefined,
  },
];

/** Addresses of bot-check vendors. After a request to a vendor, a check may appear. */
const vendorAddress =
  /^https?:\/\/(?:challenges\.cloudflare\.com|[^/]*\bhcaptcha\.com|[^/]*\.captcha-delivery\.com|captcha\.(?:px-cdn|px-cloud|perimeterx)\.net|[^/]*\.(?:arkoselabs|funcaptcha)\.com|[^/]+\/recaptcha|[^/]+\/cdn-cgi\/challenge-platform)(?::\d+)?\//;

/** Whether an address belongs to a bot-check vendor. Called for every request, so the URL is not parsed. */
export function isVendorAddress(url: string): boolean {
  return vendorAddress.test(url);
}

/** Returns the check that a frame with this address shows if the frame is visible. Undefined for other frames. */
export function checkFrameOf(address: string): CheckFrame | undefined {
  if (!isVendorAddress(address)) return undefined;
  const url = URL.parse(address);
  if (!url) return undefined;
  const rest = address.slice(address.indexOf(url.host) + url.host.length);
  return frameRules.find(
    (rule) => rule.host.test(url.hostname) && rule.address.test(rest) && rule.excluded?.test(rest) !== true,
  );
}
