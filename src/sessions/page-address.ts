import { failFields } from "../platform/errors.ts";

/** Throws `bad-request` for an address that a session may not be sent to: only http, https and `about:blank`. */
export function assertNavigable(url: string): void {
  if (url === "about:blank") return;
  const parsed = URL.canParse(url) ? new URL(url) : undefined;
  if (!parsed) throw failFields("bad-request", { url: "is not an absolute URL" });
  if (parsed.protocol !== "http:" && parsed.protocol !== "https:") {
    throw failFields("bad-request", { url: "must be http, https or about:blank" });
  }
}
