import type { LookupAddress } from "node:dns";
import { formatTarget, type HostPort, parseTarget, unwrapIPv4 } from "../../src/platform/outgoing/address-rules.ts";

/** The media server and its known addresses, which pages must not reach. */
export class MediaServer {
  /** Signalling URL: `ws://` or `wss://`. */
  readonly url: string;
  readonly #known = new Set<string>();

  constructor(url: string) {
    this.url = url;
    const { hostname, port, protocol } = new URL(url);
    const target = parseTarget(`${hostname}:${port || (protocol === "wss:" ? 443 : 80)}`);
    if (target) this.addAddress(target);
  }

  /** Records an address at which the server listens. */
  addAddress(target: HostPort): void {
    this.#known.add(nameOf(target));
  }

  /** Returns whether a target or one of its addresses is the media server. */
  isAt({ host, port }: HostPort, addresses: readonly LookupAddress[]): boolean {
    const hosts = [host, ...addresses.map(({ address }) => address)];
    return hosts.some((each) => this.#known.has(nameOf({ host: each, port })));
  }
}

/** Returns the canonical `host:port`, which is the same for IPv4 and IPv4-mapped IPv6 addresses. */
const nameOf = ({ host, port }: HostPort): string => formatTarget({ host: unwrapIPv4(host), port });
