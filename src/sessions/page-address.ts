import { failFields } from "../platform/errors.ts";

/** Says why a session may not be sent to an address; undefined when it may: only to http, https and `about:blank`. */
export function addressFault(url: string): string | undefined {
  if (url === "about:blank") return undefined;
  if (!URL.canParse(url)) return "is not an absolute URL";
  const { protocol } = new URL(url);
  return protocol === "http:" || protocol === "https:" ? undefined : "must be http, https or about:blank";
}

/** Throws `bad-request` for such an address. */
export function assertNavigable(url: string): void {
  const fault = addressFault(url);
  if (fault !== undefined) throw failFields("bad-request", { url: fault });
}
