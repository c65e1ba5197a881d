/** Longest address or title in answers, events and `state`. Pages can make both arbitrarily long. */
const maxLength = 2_000;

/** Cuts a page's text for display. */
export function shownText(text: string): string {
  return text.slice(0, maxLength).toWellFormed();
}

/** Returns an address for display: shortened and without credentials. */
export function shownAddress(url: string): string {
  return shownText(url.replace(/^([a-z][a-z0-9+.-]*:\/\/)[^/?#]*@/i, "$1"));
}
