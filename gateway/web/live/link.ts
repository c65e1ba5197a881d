const kept = { token: "pilothouse-view-key", viewer: "pilothouse-viewer-key" };

/**
 * Moves the token from the address, and so from the history, to the storage of the tab. Returns the token; without a
 * token in the address, returns the stored token or "". In a tab without storage, the token stays in the address.
 */
export function takeToken(): string {
  const token = location.hash.slice(1);
  if (token === "") return recall(kept.token);
  if (keep(kept.token, token)) history.replaceState(null, "", location.pathname);
  return token;
}

/** Returns the secret that makes this tab the same viewer after a reconnect. */
export function takeViewerKey(): string {
  const known = recall(kept.viewer);
  if (known !== "") return known;
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  const key = [...bytes].map((byte) => byte.toString(16).padStart(2, "0")).join("");
  keep(kept.viewer, key);
  return key;
}

function recall(name: string): string {
  try {
    return sessionStorage.getItem(name) ?? "";
  } catch {
    return "";
  }
}

/** Stores a value for the tab. Returns false if the tab has no storage, as in some frames. */
function keep(name: string, value: string): boolean {
  try {
    sessionStorage.setItem(name, value);
    return true;
  } catch {
    return false;
  }
}
