/** Returns whether a host name of a URL is a loopback name or address. */
export function isLoopbackName(name: string): boolean {
  return name === "localhost" || name === "[::1]" || /^127\.\d+\.\d+\.\d+$/.test(name);
}
