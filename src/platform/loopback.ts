/** Returns whether a host of a Host header or URL is a loopback name or address. */
export function isLoopback(name: string): boolean {
  return name === "localhost" || name === "[::1]" || name === "::1" || /^127\.\d+\.\d+\.\d+$/.test(name);
}

/** Returns the lower-case host of an authority, without port. */
export function hostName(authority: string): string {
  return authority.replace(/:\d+$/, "").toLowerCase();
}
