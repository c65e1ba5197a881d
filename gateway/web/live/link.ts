const kept = { token: "pilothouse-view-key", viewer: "pilothouse-viewer-key" };

/** The token of the link. It goes from the address, so that no history has it; the tab keeps it, so that it can be loaded again. */
export function takeToken(): string {
  const token = location.hash.slice(1);
  if (token === "") return recall(kept.token);
  if (keep(kept.token, token)) history.replaceState(null, "", location.pathname);
  return token;
}

/** The secret by which this tab is the same viewer after a break. */
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

/** Tells whether it could be kept: some pages in frames have no storage. */
function keep(name: string, value: string): boolean {
  try {
    sessionStorage.setItem(name, value);
    return true;
  } catch {
    return false;
  }
}
