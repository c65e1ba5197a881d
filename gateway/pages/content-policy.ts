import { createHash } from "node:crypto";

/** What a page may beyond its own style and script. */
interface Allowances {
  /** Scripts that it may load besides. */
  readonly scripts?: string;
  /** What its script may connect to. */
  readonly connect?: string;
  /** Where its forms may go. */
  readonly forms?: string;
  /** Origins whose pages may have it in a frame. */
  readonly embedders?: readonly string[];
}

/**
 * Headers of a page that may run and load its own inline style and script, and nothing else (CSP Level 3), but what it is
 * allowed besides.
 */
export function pageHeadersFor(
  style: string,
  script: string,
  { scripts, connect, forms = "'none'", embedders = [] }: Allowances = {},
): Readonly<Record<string, string>> {
  const policy = [
    "default-src 'none'",
    `style-src '${hashOf(style)}'`,
    `script-src '${hashOf(script)}'${scripts === undefined ? "" : ` ${scripts}`}`,
    "base-uri 'none'",
    `form-action ${forms}`,
    `frame-ancestors ${embedders.join(" ") || "'none'"}`,
    ...(connect === undefined ? [] : [`connect-src ${connect}`]),
  ];
  return {
    "content-type": "text/html; charset=utf-8",
    "content-security-policy": policy.join("; "),
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
  };
}

function hashOf(source: string): string {
  return `sha256-${createHash("sha256").update(source).digest("base64")}`;
}
