import { BlockList, isIP, isIPv4 } from "node:net";

/**
 * IPv4 networks that pages and requests to customers' servers must not reach: IANA's special-purpose registry, and
 * 168.63.129.16, Azure's wire server, the only metadata service on a public address.
 */
const refusedIpv4 = [
  "0.0.0.0/8",
  "10.0.0.0/8",
  "100.64.0.0/10",
  "127.0.0.0/8",
  "168.63.129.16/32",
  "169.254.0.0/16",
  "172.16.0.0/12",
  "192.0.0.0/24",
  "192.0.2.0/24",
  "192.88.99.0/24",
  "192.168.0.0/16",
  "198.18.0.0/15",
  "198.51.100.0/24",
  "203.0.113.0/24",
  "224.0.0.0/4",
  "240.0.0.0/4",
];

/**
 * Non-public parts of 2000::/3: protocol assignments (Teredo), documentation, 6to4. IPv6 addresses outside 2000::/3 are
 * never public.
 */
const refusedIpv6 = ["2001::/23", "2001:db8::/32", "2002::/16", "3fff::/20"];
const publicIpv6 = ["2000::/3"];

/** IPv6 networks with an IPv4 address in the last 32 bits, which is checked instead: IPv4-mapped and NAT64. */
const carriesIpv4 = ["::ffff:0:0/96", "64:ff9b::/96"];

const loopbackNetworks = ["127.0.0.0/8", "::1"];

/** Addresses of cloud metadata services, which reveal credentials. */
const metadataNetworks = ["168.63.129.16", "169.254.0.0/16", "fd00:ec2::254", "fd20:ce::254", "100.100.100.200"];

/** Maximum length of host names (RFC 1035). IP addresses are shorter. */
const maxHost = 255;

const refused = networks([...refusedIpv4, ...refusedIpv6]);
const publicIPv6 = networks(publicIpv6);
const carriesIPv4 = networks(carriesIpv4);
const loopback = networks(loopbackNetworks);
const metadata = networks(metadataNetworks);

/** A port and a host in the URL standard's form: lower case, one spelling per address, no brackets or trailing dot. */
export interface HostPort {
  host: string;
  port: number;
}

/** Rules for addresses requested by pages or customers. */
export interface AddressRules {
  /** Returns whether the operator allows this host and port, regardless of its addresses. */
  allowsTarget(target: HostPort): boolean;
  /** Returns whether an IP address is public or in an allowed network. */
  allowsAddress(address: string): boolean;
  /** Returns whether an IP address is in a network that the operator allows. */
  isException(address: string): boolean;
}

export interface AddressRulesOptions {
  /** Exceptions by the operator: networks (`10.1.0.0/16`, `10.1.2.3`) and targets (`intranet.example:8443`). */
  allow?: readonly string[];
  /**
   * Addresses of this machine. Refused even if public or in an allowed network, unless an allowed target or loopback
   * network permits them.
   */
  ownAddresses?: () => Iterable<string>;
}

/** Returns whether a string is a valid exception, as in EGRESS_ALLOW. */
export function isAddressException(entry: string): boolean {
  return parseTarget(entry) !== undefined || isNetwork(entry);
}

/** Returns whether a string is an IP address or CIDR. */
export function isNetwork(entry: string): boolean {
  return addNetwork(new BlockList(), entry);
}

/** Creates the rules. Throws an error about the first invalid exception. */
export function makeAddressRules(options: AddressRulesOptions = {}): AddressRules {
  const targets = new Set<string>();
  const allowed = new BlockList();
  const allowedLoopback = new BlockList();
  for (const entry of options.allow ?? []) {
    const target = parseTarget(entry);
    if (target) targets.add(formatTarget(target));
    else if (!addNetwork(isLoopbackNetwork(entry) ? allowedLoopback : allowed, entry)) {
      throw new Error(`"${entry}" is neither a network (10.1.0.0/16) nor a host with its port (name:8080)`);
    }
  }
  const isOwn = (address: string) => {
    if (contains(loopback, address)) return true;
    for (const own of options.ownAddresses?.() ?? []) if (own === address) return true;
    return false;
  };
  const isException = (address: string) => {
    const plain = unwrapIPv4(address);
    return isIP(plain) !== 0 && contains(isOwn(plain) ? allowedLoopback : allowed, plain);
  };
  return {
    isException,
    allowsTarget: (target) => targets.has(formatTarget(target)),
    allowsAddress: (address) => isException(address) || (isPublicAddress(address) && !isOwn(unwrapIPv4(address))),
  };
}

/** Returns whether an IP address is public. Returns false for other strings. */
export function isPublicAddress(address: string): boolean {
  const plain = unwrapIPv4(address);
  if (isIP(plain) === 0 || contains(refused, plain)) return false;
  return isIPv4(plain) || contains(publicIPv6, plain);
}

/** Returns whether a host name is never public: dotless, or reserved (RFC 6761, 6762, 8375, ICANN's `internal`). */
export function isPrivateName(host: string): boolean {
  return isIP(host) === 0 && (!host.includes(".") || /\.(?:localhost|local|internal|home\.arpa|test)$/.test(host));
}

/** Returns whether a host serves cloud metadata. Error messages never suggest allowing such hosts. */
export function isMetadataHost(host: string): boolean {
  if (host === "metadata" || host === "metadata.google.internal") return true;
  const plain = unwrapIPv4(host);
  return isIP(plain) !== 0 && contains(metadata, plain);
}

/** Parses `host:port` as spelled in URLs: `0x7f.1:80` is 127.0.0.1, port 80. Returns undefined if invalid. */
export function parseTarget(text: string): HostPort | undefined {
  const port = /:(\d{1,5})$/.exec(text)?.[1];
  const authority = port === undefined ? "" : text.slice(0, -port.length - 1);
  if (port === undefined || Number(port) < 1 || Number(port) > 65_535) return undefined;
  const host = normaliseHost(authority);
  return host === undefined ? undefined : { host, port: Number(port) };
}

/** Formats a target as `host:port`, with brackets around IPv6. */
export function formatTarget({ host, port }: HostPort): string {
  return host.includes(":") ? `[${host}]:${port}` : `${host}:${port}`;
}

/** Normalizes a host as the URL standard does. Returns undefined if invalid. */
export function normaliseHost(host: string): string | undefined {
  if (host.length > maxHost || /[/?#@\\\s]|^[^[]*:/.test(host)) return undefined;
  const url = URL.parse(`http://${host}/`);
  if (!url || url.hostname === "" || url.port !== "" || url.pathname !== "/") return undefined;
  return url.hostname.replace(/^\[(.*)\]$/, "$1").replace(/\.$/, "") || undefined;
}

/** Returns the eight groups of an IPv6 address. */
export function ipv6Groups(address: string): number[] {
  // The URL parser converts a dotted suffix to two hexadecimal groups.
  const halves = (normaliseHost(`[${address}]`) ?? "").split("::");
  const [head = [], tail = []] = halves.map((half) =>
    half
      .split(":")
      .filter(Boolean)
      .map((group) => Number.parseInt(group, 16)),
  );
  return [...head, ...Array<number>(Math.max(0, 8 - head.length - tail.length)).fill(0), ...tail];
}

/** Returns the IPv4 address embedded in an IPv6 address, or the address itself. */
export function unwrapIPv4(address: string): string {
  if (isIP(address) !== 6 || !contains(carriesIPv4, address)) return address;
  const [high = 0, low = 0] = ipv6Groups(address).slice(-2);
  return `${high >> 8}.${high & 255}.${low >> 8}.${low & 255}`;
}

function networks(list: readonly string[]): BlockList {
  const made = new BlockList();
  for (const network of list) addNetwork(made, network);
  return made;
}

/** Returns whether a network lies within loopback. */
function isLoopbackNetwork(text: string): boolean {
  const [address = "", prefix = "128"] = text.split("/");
  return isIP(address) !== 0 && contains(loopback, address) && Number(prefix) >= (isIPv4(address) ? 8 : 128);
}

function addNetwork(list: BlockList, text: string): boolean {
  const [address = "", prefix, more] = text.split("/");
  const version = isIP(address);
  const family = version === 6 ? "ipv6" : "ipv4";
  const longest = version === 6 ? 128 : 32;
  const length = prefix === undefined ? longest : /^\d{1,3}$/.test(prefix) ? Number(prefix) : Number.NaN;
  if (version === 0 || more !== undefined || !(length <= longest)) return false;
  list.addSubnet(address, length, family);
  return true;
}

function contains(list: BlockList, address: string): boolean {
  return list.check(address, isIPv4(address) ? "ipv4" : "ipv6");
}
