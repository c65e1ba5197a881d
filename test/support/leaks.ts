/** Bearers of every kind, the address of a second factor, and the password of everybody in tests. */
const secret = /ph[akor]_[0-9a-z]{26}_[0-9a-z]{16}|otpauth:\/\/|correct horse battery staple/;

/** Around a secret, so that one sees what has written it. */
const shown = 200;

const found: string[] = [];

/** Looks for secrets in what a service has written for others to read. A test file that finds one fails. */
export function watchForSecrets(text: string): void {
  const at = text.search(secret);
  if (at >= 0) found.push(text.slice(Math.max(0, at - shown), at + shown));
}

/** What the parsers of V8, Node and the HTTP framework say of a request that they cannot read. */
const ofParsers =
  /Unexpected (?:token|end of|non-whitespace|string|number)|(?:Expected|Bad|Unterminated) .{1,40} in JSON|JSON at position|is not valid JSON|HPE_[A-Z]|FST_ERR_|Parse Error|node:internal/;

/** Looks for texts of parsers in what a client is answered. A test file that finds one fails. */
export function watchForParsers(text: string): void {
  const at = text.search(ofParsers);
  if (at >= 0) found.push(text.slice(Math.max(0, at - shown), at + shown));
}

/** What was found since it was last asked. */
export function takeLeaks(): string[] {
  return found.splice(0);
}
