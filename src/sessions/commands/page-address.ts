import { failFields } from "../../platform/errors.ts";

/** Returns why a session may not navigate to a URL; undefined for http, https and `about:blank`. */
export function addressFault(url: string): string | undefined {
  if (url === "about:blank") return undefined;
  const { protocol } = URL.parse(url) ?? {};
  if (protocol === "http:" || protocol === "https:") return undefined;
  const scheme = missingScheme(url);
  if (scheme !== undefined) return `is not an absolute URL: put ${scheme}:// before it`;
  return protocol === undefined
    ? "is not an absolute URL, such as https://example.com"
    : "must be http, https or about:blank";
}

/** Returns the scheme that is probably missing from an address such as `example.com/a` or `localhost:3000`. */
function missingScheme(url: string): string | undefined {
  const host = /^([a-z0-9-]+(?:\.[a-z0-9-]+)*)(?::\d+)?(?:[/?#].{0,200})?$/i.exec(url)?.[1];
  if (host === undefined || !(host.includes(".") || host === "localhost")) return undefined;
  const scheme = host === "localhost" || /^[\d.]+$/.test(host) ? "http" : "https";
  return URL.parse(`${scheme}://${url}`) ? scheme : undefined;
}

/** Throws `bad-request` if a session may not navigate to the URL. */
export function assertNavigable(url: string): void {
  const fault = addressFault(url);
  if (fault !== undefined) throw failFields("bad-request", { url: fault });
}
