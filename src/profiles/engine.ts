/** The browser that a runtime is. What it keeps of the web is of that browser's own format. */
export function engineOf(runtime: string): string {
  return runtime === "headless-shell" ? "chromium" : runtime;
}
