import { BlockList, isIP } from "node:net";

/** Reads a header of a request by lower-case name. */
export type HeaderReader = (name: string) => string | undefined;

/** Who sent a request, and with which headers: what every door knows of it before anything is decoded. */
export interface Peer {
  readonly requestId: string;
  /** Client address as reported by trusted proxies. */
  readonly clientAddress: string;
  readonly header: HeaderReader;
  /** The bearer that it shows is a part of the path. */
  readonly showsInPath: boolean;
}

/** Names the peer of a request by the address that its connection comes from, and by its headers. */
export type ResolvePeer = (remoteAddress: string | undefined, header: HeaderReader) => Peer;

// What may stand in logs and headers as it is.
const saneRequestId = /^[A-Za-z0-9._~:-]{1,128}$/;

/** A peer who shows a bearer elsewhere than in the Authorization header, which counts where it is there. */
export function showingBearer(peer: Peer, bearer: string | undefined): Peer {
  if (bearer === undefined) return peer;
  const { header } = peer;
  const authorization = header("authorization") ?? `Bearer ${bearer}`;
  return { ...peer, header: (name) => (name === "authorization" ? authorization : header(name)) };
}

/** The same for a bearer in the path. */
export function showingInPath(peer: Peer, bearer: string | undefined): Peer {
  if (bearer === undefined || peer.header("authorization") !== undefined) return peer;
  return { ...showingBearer(peer, bearer), showsInPath: true };
}

/** Makes what names peers. Only hops that are in `trustedProxies` are believed what they say of others. */
export function createPeers(trustedProxies: BlockList, makeRequestId: () => string): ResolvePeer {
  return (remoteAddress, header) => {
    const received = header("x-request-id");
    return {
      requestId: received !== undefined && saneRequestId.test(received) ? received : makeRequestId(),
      clientAddress: clientAddress(plainAddress(remoteAddress), header("x-forwarded-for"), trustedProxies),
      header,
      showsInPath: false,
    };
  };
}

/** Walks X-Forwarded-For from the nearest hop outwards, as long as the hop is a trusted proxy. */
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

/** An address as text; that of an IPv4 client on a socket for both versions (`::ffff:192.0.2.1`) as IPv4. */
export function plainAddress(remoteAddress: string | undefined): string {
  return remoteAddress?.replace(/^::ffff:(?=\d+\.)/, "") ?? "unknown";
}

/** Says whether a list holds an address. */
export function isListed(list: BlockList, address: string): boolean {
  const version = isIP(address);
  return version !== 0 && list.check(address, version === 4 ? "ipv4" : "ipv6");
}

/** Makes a list of addresses and networks (`10.0.0.0/8`). */
export function blockListOf(items: readonly string[]): BlockList {
  const list = new BlockList();
  for (const item of items) {
    const [address = "", bits] = item.split("/");
    const family = isIP(address) === 6 ? "ipv6" : "ipv4";
    list.addSubnet(address, bits === undefined ? (family === "ipv6" ? 128 : 32) : Number(bits), family);
  }
  return list;
}
