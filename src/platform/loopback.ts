/** Says whether a name or an address, as a Host header or a URL has it, is this machine's alone. */
export function isLoopback(name: string): boolean {
  return name === "localhost" || name === "[::1]" || name === "::1" || /^127\.\d+\.\d+\.\d+$/.test(name);
}

/** The name in a Host header or an authority, without its port, in lower case. */
export function hostName(authority: string): string {
  return authority.replace(/:\d+$/, "").toLowerCase();
}
