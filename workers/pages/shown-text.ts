import { cutText } from "../injected/plain-text.ts";

/** Maximum characters of an address or title in responses, events and `state`. Pages can make both arbitrarily long. */
const maxLength = 2_000;

/** Cuts a page's text for display. A cut text ends with its lookahead, which `VariableStore.mask` removes. */
export function shownText(text: string): string {
  return cutText(text, maxLength);
}

/** Returns an address for display: shortened and without credentials. */
export function shownAddress(url: string): string {
  return shownText(url.replace(/^([a-z][a-z0-9+.-]*:\/\/)[^/?#]*@/i, "$1"));
}
