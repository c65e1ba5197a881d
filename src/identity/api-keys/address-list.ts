import { isIPv4, isIPv6, SocketAddress } from "node:net";
import { failFields } from "../../platform/errors.ts";

/** An IP network, or a single address. */
interface Network {
  /** Address bits: 32 or 128. */
  readonly width: number;
  /** The leading bits that all addresses share. */
  readonly start: bigint;
  /** Number of shared bits. */
  readonly prefix: number;
}

/** Parses an IPv6 address in any notation. */
function bitsOfIpv6(text: string): bigint {
  const { address } = new SocketAddress({ address: text, family: "ipv6" });
  // Replaces a trailing IPv4 address with two groups.
  const plain = address.replace(/(\d+)\.(\d+)\.(\d+)\.(\d+)$/, (_all, ...bytes: string[]) =>
    [0, 2].map((at) => (Number(bytes[at]) * 256 + Number(bytes[at + 1])).toString(16)).join(":"),
  );
  const [head = "", tail] = plain.split("::");
  const groupsOf = (part: string | undefined): string[] => (part ? part.split(":") : []);
  const [left, right] = [groupsOf(head), groupsOf(tail)];
  const zeros = Array<string>(8 - left.length - right.length).fill("0");
  return [...left, ...zeros, ...right].reduce((bits, group) => (bits << 16n) | BigInt(`0x${group}`), 0n);
}

/** Parses an address. IPv4-mapped IPv6 addresses (::ffff:0:0/96) become IPv4. */
function readAddress(text: string): { readonly width: number; readonly bits: bigint } | undefined {
  if (isIPv4(text)) {
    const bits = text.split(".").reduce((number, byte) => (number << 8n) | BigInt(byte), 0n);
    return { width: 32, bits };
  }
  if (!isIPv6(text) || text.includes("%")) return undefined;
  const bits = bitsOfIpv6(text);
  return bits >> 32n === 0xffffn ? { width: 32, bits: bits & 0xffff_ffffn } : { width: 128, bits };
}

/** Parses a network such as `203.0.113.0/24`, or an address. Returns undefined if invalid. */
function readNetwork(text: string): Network | undefined {
  const [, address = "", length] = /^([^/]+)(?:\/(\d{1,3}))?$/.exec(text) ?? [];
  const read = readAddress(address);
  if (!read) return undefined;
  const prefix = length === undefined ? read.width : Number(length);
  return prefix > read.width
    ? undefined
    : { width: read.width, prefix, start: read.bits >> BigInt(read.width - prefix) };
}

function contains(outer: Network, inner: Network): boolean {
  const isLarger = outer.width === inner.width && outer.prefix <= inner.prefix;
  return isLarger && inner.start >> BigInt(inner.prefix - outer.prefix) === outer.start;
}

const readNetworks = (texts: readonly string[]): Network[] => texts.flatMap((text) => readNetwork(text) ?? []);

/** Throws `validation-failed` unless each text is an address or a network. */
export function assertNetworks(texts: readonly string[]): void {
  const faults = texts.flatMap((text, index) =>
    readNetwork(text) ? [] : [[`addresses[${index}]`, "must be an IP address or a network such as 203.0.113.0/24"]],
  );
  if (faults.length > 0) throw failFields("validation-failed", Object.fromEntries(faults));
}

/** Returns whether each inner network lies within an outer network. An empty list means all addresses. */
export function areWithin(inner: readonly string[], outer: readonly string[]): boolean {
  if (outer.length === 0) return true;
  const networks = readNetworks(outer);
  return inner.length > 0 && readNetworks(inner).every((one) => networks.some((other) => contains(other, one)));
}

/** Compiles a list into a predicate on addresses. Returns undefined for an empty list, which allows all. */
export function compileAddresses(texts: readonly string[]): ((address: string) => boolean) | undefined {
  if (texts.length === 0) return undefined;
  const networks = readNetworks(texts);
  return (address) => {
    const one = readNetwork(address);
    return one !== undefined && networks.some((network) => contains(network, one));
  };
}
