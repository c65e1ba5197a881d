import { lookup } from "node:dns/promises";
import { isIP } from "node:net";
import { within } from "../../src/platform/deadline.ts";

/** Lookup timeout in milliseconds. */
const lookupMs = 1_000;

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

/**
 * Returns the current addresses of the control processes in CONTROL. A DNS name is replaced by all its addresses, or
 * skipped if it is not found in time. Rejects if no address is found.
 */
export async function findControlProcesses(
  entries: readonly string[],
  find: FindAddresses = findByDns,
): Promise<readonly ControlAddress[]> {
  const found = (await Promise.all(entries.map((entry) => resolve(entry, find)))).flat();
  if (found.length === 0) throw new Error(`no control process found for ${entries.join(", ")}`);
  return found;
}

async function resolve(entry: string, find: FindAddresses): Promise<ControlAddress[]> {
  const [, bracketed, plain = "", port = ""] = /^(?:\[(.+)\]|([^[\]]+)):(\d+)$/.exec(entry) ?? [];
  const name = bracketed ?? plain;
  if (entry.startsWith("unix:") || isIP(name) !== 0) return [{ target: entry }];
  const addresses = await within(find(name), lookupMs, []);
  return addresses.map((address) => ({
    target: isIP(address) === 6 ? `[${address}]:${port}` : `${address}:${port}`,
    name,
  }));
}
