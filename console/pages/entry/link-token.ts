let token = "";

/** Returns the token of the opened link, and removes it from the address, so that the history does not contain it. */
export function takeLinkToken(): string {
  if (location.hash.length > 1) {
    token = location.hash.slice(1);
    history.replaceState(history.state, "", location.pathname);
  }
  return token;
}
