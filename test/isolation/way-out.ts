/** The ways by which a page may try to reach an address, each with a port of its own so that arrivals tell them apart. */
export const ways = {
  navigation: { port: 9100, transport: "tcp" },
  fetch: { port: 9101, transport: "tcp" },
  websocket: { port: 9102, transport: "tcp" },
  webtransport: { port: 9103, transport: "udp" },
  stun: { port: 9104, transport: "udp" },
  turn: { port: 9105, transport: "tcp" },
} as const;

/**
 * A public address, which a session's proxy is asked for; nothing leads there from the test's own network. Not a name: a
 * proxy on this machine is told none that does not resolve in time, and here nobody resolves any.
 */
export const elsewhere = "http://93.184.215.14/";

/** The name of a way out. */
export type Way = keyof typeof ways;

/** The names of all ways out. */
export const wayNames: readonly Way[] = ["navigation", "fetch", "websocket", "webtransport", "stun", "turn"];

/** What a run of the probe saw: arrivals as `way address`, and whether the page could reach what it is allowed to. */
export interface ProbeResult {
  arrivals: string[];
  refusals: string[];
  /** What the session's proxy was asked for, where it has one: before the page tried what it is allowed to, and after. */
  asked: { before: string[]; after: string[] };
  reachedAllowed: boolean;
}
