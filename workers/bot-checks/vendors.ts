/** The kinds of bot checks that are told apart; `generic` is a page whose purpose is a check of nobody's that we know. */
export type ChallengeKind =
  | "cloudflare"
  | "turnstile"
  | "recaptcha"
  | "hcaptcha"
  | "datadome"
  | "perimeterx"
  | "arkose"
  | "generic";

/** A frame that is a check when it is shown. */
export interface CheckFrame {
  readonly kind: ChallengeKind;
  /** A frame smaller than this is a sensor or a badge, not something to solve. */
  readonly minWidth: number;
  readonly minHeight: number;
  /** Fields beside the frame that carry the token once the check is passed; the frame itself stays. */
  readonly answer: string | undefined;
}

interface FrameRule extends CheckFrame {
  readonly host: RegExp;
  /** Of path, query and fragment. */
  readonly address: RegExp;
  /** The same for what is there without being a check. */
  readonly unless?: RegExp;
}

/**
 * Which frames are checks, by address. A vendor's widget that waits for a click or a puzzle is one; its invisible
 * variants, sensors, embeds and documentation are not.
 */
const frameRules: readonly FrameRule[] = [
  {
    kind: "turnstile",
    host: /^challenges\.cloudflare\.com$/,
    address: /^\/cdn-cgi\/challenge-platform\/.*\/turnstile\/if\//,
    minWidth: 100,
    minHeight: 40,
    answer: '[name="cf-turnstile-response"]',
  },
  {
    kind: "recaptcha",
    host: /^www\.(?:google\.com|recaptcha\.net)$/,
    address: /^\/recaptcha\/(?:api2|enterprise)\/anchor\b/,
    unless: /[?&]size=invisible\b/,
    minWidth: 100,
    minHeight: 60,
    answer: '[name="g-recaptcha-response"]',
  },
  {
    kind: "recaptcha",
    host: /^www\.(?:google\.com|recaptcha\.net)$/,
    address: /^\/recaptcha\/(?:api2|enterprise)\/bframe\b/,
    minWidth: 200,
    minHeight: 200,
    answer: undefined,
  },
  {
    kind: "hcaptcha",
    host: /(?:^|\.)hcaptcha\.com$/,
    address: /^\/captcha\/.*[#&]frame=checkbox(?:&|$)/,
    unless: /[#&]size=invisible\b/,
    minWidth: 100,
    minHeight: 60,
    answer: '[name="h-captcha-response"]',
  },
  {
    kind: "hcaptcha",
    host: /(?:^|\.)hcaptcha\.com$/,
    address: /^\/captcha\/.*[#&]frame=challenge(?:&|$)/,
    minWidth: 200,
    minHeight: 200,
    answer: undefined,
  },
  {
    kind: "datadome",
    host: /(?:^|\.)captcha-delivery\.com$/,
    address: /^\/(?:captcha|interstitial)\//,
    minWidth: 100,
    minHeight: 100,
    answer: undefined,
  },
  {
    kind: "perimeterx",
    host: /^captcha\.(?:px-cdn|px-cloud|perimeterx)\.net$/,
    address: /^\//,
    minWidth: 100,
    minHeight: 40,
    answer: undefined,
  },
  {
    kind: "arkose",
    host: /^(?!www\.)[a-z0-9-]+\.(?:arkoselabs|funcaptcha)\.com$/,
    address: /^\/(?:fc|v2|v3)\//,
    minWidth: 100,
    minHeight: 100,
    answer: undefined,
  },
];

/** What checks are loaded from. It says that a check may come, not that there is one. */
const vendorAddress =
  /^https?:\/\/(?:challenges\.cloudflare\.com|[^/]*\bhcaptcha\.com|[^/]*\.captcha-delivery\.com|captcha\.(?:px-cdn|px-cloud|perimeterx)\.net|[^/]*\.(?:arkoselabs|funcaptcha)\.com|[^/]+\/recaptcha|[^/]+\/cdn-cgi\/challenge-platform)(?::\d+)?\//;

/** Says whether an address belongs to one who makes checks; it is asked of every request, so it does not parse. */
export function isVendorAddress(url: string): boolean {
  return vendorAddress.test(url);
}

/** Finds what check a frame of this address is, if it is shown. */
export function checkFrameOf(address: string): CheckFrame | undefined {
  if (!isVendorAddress(address)) return undefined;
  const url = URL.parse(address);
  if (!url) return undefined;
  const rest = address.slice(address.indexOf(url.host) + url.host.length);
  return frameRules.find(
    (rule) => rule.host.test(url.hostname) && rule.address.test(rest) && rule.unless?.test(rest) !== true,
  );
}
