import { createHash } from "node:crypto";

/** Resources that a page may use besides its own style and script. */
interface Allowances {
  /** Sources of additional scripts. */
  readonly scripts?: string;
  /** Targets of the script's connections. */
  readonly connect?: string;
  /** Targets of forms. */
  readonly forms?: string;
  /** Origins whose pages may embed the page in a frame. */
  readonly embedders?: readonly string[];
}

/**
 * Returns headers that allow a page only its own inline style and script (CSP Level 3), and the given additional
 * resources. An empty `script` allows no inline script.
 */
export function pageHeadersFor(
  style: string,
  script: string,
  { scripts, connect, forms = "'none'", embedders = [] }: Allowances = {},
): Readonly<Record<string, string>> {
  const policy = [
    "default-src 'none'",
    `style-src '${hashOf(style)}'`,
    `script-src ${script === "" ? "'none'" : `'${hashOf(script)}'`}${scripts === undefined ? "" : ` ${scripts}`}`,
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
