import { lookup } from "node:dns/promises";
import { isIP } from "node:net";
import { within } from "../../src/platform/deadline.ts";

/** Lookup timeout in milliseconds. With a call of 2 s after each lookup, two attempts fit into the lease of 8 s. */
const lookupTime = 2_000;

/** Dial address of a control process. */
export interface ControlAddress {
  /** `address:port`, or `unix:/path`. */
  readonly target: string;
  /** The DNS name in the control process's certificate, if the address was resolved from a name. */
  readonly name?: string;
}

/** Resolves a name to all its addresses. */
export type FindAddresses = (name: string) => Promise<readonly string[]>;

async function findByDns(name: string): Promise<readonly string[]> {
  const found = await lookup(name, { all: true });
  return found.map(({ address }) => address);
}

/** Round-robin over the control processes in CONTROL. A DNS name stands for all its current addresses. */
export class ControlRound {
  readonly #entries: readonly string[];
  readonly #find: FindAddresses;
  #left: ControlAddress[] = [];

  constructor(entries: readonly string[], find: FindAddresses = findByDns) {
    this.#entries = entries;
    this.#find = find;
  }

  /** Returns the next control process. Each round resolves the names again. */
  async next(): Promise<ControlAddress> {
    if (this.#left.length === 0) {
      this.#left = (await Promise.all(this.#entries.map((entry) => this.#resolve(entry)))).flat();
    }
    const next = this.#left.shift();
    if (!next) throw new Error(`no control process found for ${this.#entries.join(", ")}`);
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
