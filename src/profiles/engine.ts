/** Browser engine of a runtime. Profiles are in the format of their engine. */
export function engineOf(runtime: string): string {
  return runtime === "headless-shell" ? "chromium" : runtime;
}
