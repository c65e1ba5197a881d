import { isIPv4, isIPv6, SocketAddress } from "node:net";
import { failFields } from "../../platform/errors.ts";

/** An IP network; an address is one of a single address. */
interface Network {
  /** How many bits an address has: 32 or 128. */
  readonly width: number;
  /** The bits that all its addresses begin with, as a number, and how many those are. */
  readonly start: bigint;
  readonly prefix: number;
}

/** Reads an IPv6 address in any of its spellings. */
function bitsOfIpv6(text: string): bigint {
  const { address } = new SocketAddress({ address: text, family: "ipv6" });
  // The spelling that ends in an IPv4 address has it in the place of two groups.
  const plain = address.replace(/(\d+)\.(\d+)\.(\d+)\.(\d+)$/, (_all, ...bytes: string[]) =>
    [0, 2].map((at) => (Number(bytes[at]) * 256 + Number(bytes[at + 1])).toString(16)).join(":"),
  );
  const [head = "", tail] = plain.split("::");
  const groupsOf = (part: string | undefined): string[] => (part ? part.split(":") : []);
  const [left, right] = [groupsOf(head), groupsOf(tail)];
  const zeros = Array<string>(8 - left.length - right.length).fill("0");
  return [...left, ...zeros, ...right].reduce((bits, group) => (bits << 16n) | BigInt(`0x${group}`), 0n);
}

/** Reads an address; one of IPv4 in the clothes of IPv6 (::ffff:0:0/96) is one of IPv4. */
function readAddress(text: string): { readonly width: number; readonly bits: bigint } | undefined {
  if (isIPv4(text)) {
    const bits = text.split(".").reduce((number, byte) => (number << 8n) | BigInt(byte), 0n);
    return { width: 32, bits };
  }
  if (!isIPv6(text) || text.includes("%")) return undefined;
  const bits = bitsOfIpv6(text);
  return bits >> 32n === 0xffffn ? { width: 32, bits: bits & 0xffff_ffffn } : { width: 128, bits };
}

/** Reads a network such as `203.0.113.0/24`, or an address; undefined when it is none. */
function readNetwork(text: string): Network | undefined {
  const [, address = "", length] = /^([^/]+)(?:\/(\d{1,3}))?$/.exec(text) ?? [];
  const read = readAddress(address);
  if (!read) return undefined;
  const prefix = length === undefined ? read.width : Number(length);
  return prefix > read.width
    ? undefined
    : { width: read.width, prefix, start: read.bits >> BigInt(read.width - prefix) };
}

function holds(outer: Network, inner: Network): boolean {
  const isLarger = outer.width === inner.width && outer.prefix <= inner.prefix;
  return isLarger && inner.start >> BigInt(inner.prefix - outer.prefix) === outer.start;
}

const readNetworks = (texts: readonly string[]): Network[] => texts.flatMap((text) => readNetwork(text) ?? []);

/** Throws `validation-failed` for what is neither an address nor a network. */
export function assertNetworks(texts: readonly string[]): void {
  const faults = texts.flatMap((text, index) =>
    readNetwork(text) ? [] : [[`addresses[${index}]`, "must be an IP address or a network such as 203.0.113.0/24"]],
  );
  if (faults.length > 0) throw failFields("validation-failed", Object.fromEntries(faults));
}

/** Says whether every one of some networks lies in another list. An empty list means every address. */
export function areWithin(inner: readonly string[], outer: readonly string[]): boolean {
  if (outer.length === 0) return true;
  const networks = readNetworks(outer);
  return inner.length > 0 && readNetworks(inner).every((one) => networks.some((other) => holds(other, one)));
}

/** Makes what says whether an address is in a list; undefined for an empty list, in which every one is. */
export function compileAddresses(texts: readonly string[]): ((address: string) => boolean) | undefined {
  if (texts.length === 0) return undefined;
  const networks = readNetworks(texts);
  return (address) => {
    const one = readNetwork(address);
    return one !== undefined && networks.some((network) => holds(network, one));
  };
}
