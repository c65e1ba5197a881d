import { createHash } from "node:crypto";

/**
 * Headers of a page that may run and load its own inline style and script, and nothing else (CSP Level 3), but what
 * further directives allow it.
 */
export function pageHeadersFor(
  style: string,
  script: string,
  more: readonly string[] = [],
): Readonly<Record<string, string>> {
  const policy = [
    "default-src 'none'",
    `style-src '${hashOf(style)}'`,
    `script-src '${hashOf(script)}'`,
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
    ...more,
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
