import { lookup } from "node:dns/promises";
import { isIP } from "node:net";
import { within } from "../../src/platform/deadline.ts";

/** Milliseconds for a name: with a call of 2 s after it, two of them can be tried within the lease. */
const lookupTime = 2_000;

/** A control process as it is dialled. */
export interface ControlAddress {
  /** `address:port`, or `unix:/path`. */
  readonly target: string;
  /** The name that stood for it, which its certificate bears. */
  readonly name?: string;
}

/** Finds all addresses of a name. */
export type FindAddresses = (name: string) => Promise<readonly string[]>;

async function findByDns(name: string): Promise<readonly string[]> {
  const found = await lookup(name, { all: true });
  return found.map(({ address }) => address);
}

/** Goes round the control processes of CONTROL, one after the other; a name stands for every address that it has at the moment. */
export class ControlRound {
  readonly #entries: readonly string[];
  readonly #find: FindAddresses;
  #left: ControlAddress[] = [];

  constructor(entries: readonly string[], find: FindAddresses = findByDns) {
    this.#entries = entries;
    this.#find = find;
  }

  /** Gives the next control process. Names are looked up anew each time round, so that they may come and go. */
  async next(): Promise<ControlAddress> {
    if (this.#left.length === 0) {
      this.#left = (await Promise.all(this.#entries.map((entry) => this.#resolve(entry)))).flat();
    }
    const next = this.#left.shift();
    if (!next) throw new Error(`no control process is found by ${this.#entries.join(", ")}`);
    return next;
  }

  async #resolve(entry: string): Promise<ControlAddress[]> {
    const [, bracketed, plain = "", port = ""] = /^(?:\[(.+)\]|([^[\]]+)):(\d+)$/.exec(entry) ?? [];
    const name = bracketed ?? plain;
    if (entry.startsWith("unix:") || isIP(name) !== 0) return [{ target: entry }];
    const addresses = await within(this.#find(name), lookupTime, []);
    return addresses.map((address) => ({
      target: isIP(address) === 6 ? `[${address}]:${port}` : `${address}:${port}`,
      name,
    }));
  }
}
