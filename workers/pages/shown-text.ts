/** Longest address and title that answers, events and `state` carry: a page can make both as long as it likes. */
const maxLength = 2_000;

/** Cuts a text of a page's to what is shown of it. */
export function shownText(text: string): string {
  return text.slice(0, maxLength).toWellFormed();
}

/** Gives an address as it is shown: cut, and without the name and password that it may carry. */
export function shownAddress(url: string): string {
  return shownText(url.replace(/^([a-z][a-z0-9+.-]*:\/\/)[^/?#]*@/i, "$1"));
}
