import type { LookupAddress } from "node:dns";
import { formatTarget, parseTarget, type Target, unwrapIPv4 } from "../../src/platform/outgoing/address-rules.ts";

/** The media server, and at which addresses it listens, as far as that is known: no page is to reach it. */
export class MediaServer {
  /** Where its signalling is spoken: `ws://` or `wss://`. */
  readonly url: string;
  readonly #known = new Set<string>();

  constructor(url: string) {
    this.url = url;
    const { hostname, port, protocol } = new URL(url);
    const target = parseTarget(`${hostname}:${port || (protocol === "wss:" ? 443 : 80)}`);
    if (target) this.learn(target);
  }

  /** Takes note of an address at which it listens. */
  learn(target: Target): void {
    this.#known.add(nameOf(target));
  }

  /** Whether a target leads to it. */
  isAt({ host, port }: Target, addresses: readonly LookupAddress[]): boolean {
    const hosts = [host, ...addresses.map(({ address }) => address)];
    return hosts.some((each) => this.#known.has(nameOf({ host: each, port })));
  }
}

/** One name for each place, however an address is written. */
const nameOf = ({ host, port }: Target): string => formatTarget({ host: unwrapIPv4(host), port });
