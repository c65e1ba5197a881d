/** Channels through which a page may try to reach an address. Each has its own port, which identifies arrivals. */
export const ways = {
  navigation: { port: 9100, transport: "tcp" },
  fetch: { port: 9101, transport: "tcp" },
  websocket: { port: 9102, transport: "tcp" },
  webtransport: { port: 9103, transport: "udp" },
  stun: { port: 9104, transport: "udp" },
  turn: { port: 9105, transport: "tcp" },
} as const;

/**
 * Public address that is requested from a session's proxy and is not routable from the test's network. A name would not
 * resolve here, so a local proxy would never receive it.
 */
export const elsewhere = "http://93.184.215.14/";

export type Way = keyof typeof ways;

export const wayNames: readonly Way[] = ["navigation", "fetch", "websocket", "webtransport", "stun", "turn"];

/** Result of a probe: arrivals as `channel address`, and whether the page reached its allowed address. */
export interface ProbeResult {
  arrivals: string[];
  refusals: string[];
  /** Requests to the session's proxy, if any, before and after the page tried its allowed address. */
  asked: { before: string[]; after: string[] };
  reachedAllowed: boolean;
}
