/** Bearers of all kinds, URLs of second factors, and the password of all test users. */
const secret = /ph[akort]_[0-9a-z]{26}_[0-9a-z]{16}|otpauth:\/\/|correct horse battery staple/;

/** Characters around a secret that identify its source. */
const shown = 200;

const found: string[] = [];

/** Searches output of a service for secrets. A test file in which one is found fails. */
export function watchForSecrets(text: string): void {
  const at = text.search(secret);
  if (at >= 0) found.push(text.slice(Math.max(0, at - shown), at + shown));
}

/** Error texts of the parsers of V8, Node and the HTTP framework. */
const ofParsers =
  /Unexpected (?:token|end of|non-whitespace|string|number)|(?:Expected|Bad|Unterminated) .{1,40} in JSON|JSON at position|is not valid JSON|HPE_[A-Z]|FST_ERR_|Parse Error|node:internal/;

/** Looks for texts of parsers in a response. A test file in which a response has one fails. */
export function watchForParsers(text: string): void {
  const at = text.search(ofParsers);
  if (at >= 0) found.push(text.slice(Math.max(0, at - shown), at + shown));
}

/** Returns what was found since the last call. */
export function takeLeaks(): string[] {
  return found.splice(0);
}
