/** Maximum characters of a text or URL in a session's log. */
const logTextLength = 500;

/** Schemes of URLs that are requested from a server. URLs of other schemes may contain data. */
const hasServer = /^(?:https?|wss?|ftp):$/;

/** URLs in a text. Bounded, so that the expression takes linear time. */
const addresses = /\b(?:https?|wss?|ftp|data|blob):[^\s"'`<>()\\]{1,2000}/gi;

/**
 * Removes what may be secret from a URL. Scheme, host, path and the names in the query remain. Query values, fragment,
 * credentials and matrix parameters are removed. A part of the query without `=` counts as a value. Of a URL that is
 * not requested from a server, only the scheme remains, and the name of an `about:` page.
 */
export function loggedAddress(url: string): string {
  const [, scheme = ""] = /^([a-z][a-z0-9+.-]{0,31}:)/i.exec(url) ?? [];
  if (scheme.toLowerCase() === "about:") return /^about:[a-z]{1,20}/i.exec(url)?.[0] ?? scheme;
  if (!hasServer.test(scheme.toLowerCase())) return scheme;
  const [, host = "", path = "", query = ""] =
    /^[a-z]+:\/\/(?:[^/?#]*@)?([^/?#@]*)([^?#]*)(?:\?([^#]*))?/i.exec(url.slice(0, 8_192)) ?? [];
  const names = query.split("&", 100).flatMap((part) => (part.includes("=") ? [part.slice(0, part.indexOf("="))] : []));
  const shownPath = path.replace(/;[^/]*/g, "");
  return cutText(`${scheme}//${host}${shownPath}${names.length > 0 ? `?${names.join("&")}` : ""}`);
}

/** Returns a text of a page with its URLs reduced as by `loggedAddress`. */
export function loggedText(text: string): string {
  return cutText(text.slice(0, 2_000).replace(addresses, loggedAddress));
}

function cutText(text: string): string {
  return text.slice(0, logTextLength).toWellFormed();
}
