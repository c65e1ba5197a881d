import { BlockList, isIP } from "node:net";

/** Headers that proxies add. A request with one of them may come from another machine. */
export const forwardingHeaders = ["forwarded", "via", "x-forwarded-for", "x-forwarded-host", "x-real-ip"];

/** Returns a request header by lower-case name. */
export type HeaderReader = (name: string) => string | undefined;

/** Sender of a request, known before the request is decoded. */
export interface Peer {
  readonly requestId: string;
  /** Client address as reported by trusted proxies. */
  readonly clientAddress: string;
  readonly header: HeaderReader;
  /** Whether the credentials are part of the path or query. */
  readonly hasBearerInPath: boolean;
}

/** Resolves the peer of a request from the remote address of the connection and the headers. */
export type ResolvePeer = (remoteAddress: string | undefined, header: HeaderReader) => Peer;

// Matches request ids that are safe in logs and headers.
const saneRequestId = /^[A-Za-z0-9._~:-]{1,128}$/;

/** Returns the peer with `bearer` as its Authorization, unless the request has an Authorization header. */
export function withBearer(peer: Peer, bearer: string | undefined): Peer {
  if (bearer === undefined) return peer;
  const { header } = peer;
  const authorization = header("authorization") ?? `Bearer ${bearer}`;
  return { ...peer, header: (name) => (name === "authorization" ? authorization : header(name)) };
}

/** Returns the peer with a bearer from the path or query, unless the request has an Authorization header. */
export function withBearerInPath(peer: Peer, bearer: string | undefined): Peer {
  if (bearer === undefined || peer.header("authorization") !== undefined) return peer;
  return { ...withBearer(peer, bearer), hasBearerInPath: true };
}

/** Creates the resolver of peers. X-Forwarded-For counts only if it comes from one of `trustedProxies`. */
export function createPeers(trustedProxies: BlockList, makeRequestId: () => string): ResolvePeer {
  return (remoteAddress, header) => {
    const received = header("x-request-id");
    return {
      requestId: received !== undefined && saneRequestId.test(received) ? received : makeRequestId(),
      clientAddress: clientAddress(plainAddress(remoteAddress), header("x-forwarded-for"), trustedProxies),
      header,
      hasBearerInPath: false,
    };
  };
}

/**
 * Returns the client address: the first hop that is not a trusted proxy, from the connection backwards through
 * X-Forwarded-For. Stops at a hop that is not an address.
 */
function clientAddress(remoteAddress: string, forwarded: string | undefined, trusted: BlockList): string {
  const hops = forwarded?.split(",").map((hop) => hop.trim()) ?? [];
  let address = remoteAddress;
  while (hops.length > 0 && isListed(trusted, address)) {
    const hop = hops.pop() ?? "";
    if (isIP(hop) === 0) break;
    address = hop;
  }
  return address;
}

/** Converts an IPv4-mapped address (`::ffff:192.0.2.1`) to IPv4. Returns "unknown" if there is no address. */
export function plainAddress(remoteAddress: string | undefined): string {
  return remoteAddress?.replace(/^::ffff:(?=\d+\.)/, "") ?? "unknown";
}

/** Returns whether a list contains an address. */
export function isListed(list: BlockList, address: string): boolean {
  const version = isIP(address);
  return version !== 0 && list.check(address, version === 4 ? "ipv4" : "ipv6");
}

/** Creates a list of addresses and networks (`10.0.0.0/8`). */
export function blockListOf(items: readonly string[]): BlockList {
  const list = new BlockList();
  for (const item of items) {
    const [address = "", bits] = item.split("/");
    const family = isIP(address) === 6 ? "ipv6" : "ipv4";
    list.addSubnet(address, bits === undefined ? (family === "ipv6" ? 128 : 32) : Number(bits), family);
  }
  return list;
}
