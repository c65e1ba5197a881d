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

/** What was found since it was last asked. */
export function takeLeaks(): string[] {
  return found.splice(0);
}
