import { BlockList, isIP, isIPv4 } from "node:net";

/**
 * IPv4 networks that no page may reach: everything that is not on the public internet (IANA's special-purpose registry),
 * and 168.63.129.16, the one metadata service that hides behind a public address (Azure's wire server).
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

/** Of IPv6 only 2000::/3 is the public internet; these parts of it are not: protocol assignments (Teredo), documentation, 6to4. */
const refusedIpv6 = ["2001::/23", "2001:db8::/32", "2002::/16", "3fff::/20"];
const publicIpv6 = ["2000::/3"];

/** Forms that carry an IPv4 address in their last 32 bits, which decides: IPv4-mapped, and NAT64's well-known prefix. */
const carriesIpv4 = ["::ffff:0:0/96", "64:ff9b::/96"];

/** Addresses that are always this machine's own. */
const loopbackNetworks = ["127.0.0.0/8", "::1"];

/** Where clouds tell a machine its credentials, for whoever asks from it. */
const metadataNetworks = ["168.63.129.16", "169.254.0.0/16", "fd00:ec2::254", "fd20:ce::254", "100.100.100.200"];

/** Longest name of a host (RFC 1035), and longer than any address. */
const maxHost = 255;

const refused = networks([...refusedIpv4, ...refusedIpv6]);
const publicIPv6 = networks(publicIpv6);
const carriesIPv4 = networks(carriesIpv4);
const loopback = networks(loopbackNetworks);
const metadata = networks(metadataNetworks);

/** A host as the URL standard writes it (lower case, one spelling per address, no brackets, no final dot) and a port. */
export interface Target {
  host: string;
  port: number;
}

/** What decides which addresses may be reached for somebody else: by a page, or by us for a customer. */
export interface AddressRules {
  /** Tells whether the operator let this host and port through by name, whatever it resolves to. */
  allowsTarget(target: Target): boolean;
  /** Tells whether a literal IP address is on the public internet, or in a network that the operator let through. */
  allowsAddress(address: string): boolean;
  /** Tells whether a literal IP address is in a network that the operator let through. */
  isException(address: string): boolean;
}

export interface AddressRulesOptions {
  /** The operator's exceptions: networks (`10.1.0.0/16`, `10.1.2.3`) and targets (`intranet.example:8443`). */
  allow?: readonly string[];
  /**
   * Addresses of this machine, where its own services listen too. They are refused although they are public, or lie in a
   * network that is let through: only a target, or a network of loopback alone, opens them.
   */
  ownAddresses?: () => Iterable<string>;
}

/** Tells whether a text is one of the operator's exceptions: the one grammar of EGRESS_ALLOW and its like. */
export function isAddressException(entry: string): boolean {
  return parseTarget(entry) !== undefined || isNetwork(entry);
}

/** Tells whether a text is an address or a CIDR. */
export function isNetwork(entry: string): boolean {
  return addNetwork(new BlockList(), entry);
}

/** Makes the rules, and throws a sentence about the first exception that cannot be read. */
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

/** Tells whether a literal IP address belongs to the public internet; anything that is not an address does not. */
export function isPublicAddress(address: string): boolean {
  const plain = unwrapIPv4(address);
  if (isIP(plain) === 0 || contains(refused, plain)) return false;
  return isIPv4(plain) || contains(publicIPv6, plain);
}

/** Names that are never on the public internet: without a dot, or reserved (RFC 6761, 6762, 8375, ICANN's `internal`). */
export function isPrivateName(host: string): boolean {
  return isIP(host) === 0 && (!host.includes(".") || /\.(?:localhost|local|internal|home\.arpa|test)$/.test(host));
}

/** Tells whether a host is one at which a cloud serves its metadata: nobody is ever advised to open it. */
export function isMetadataHost(host: string): boolean {
  if (host === "metadata" || host === "metadata.google.internal") return true;
  const plain = unwrapIPv4(host);
  return isIP(plain) !== 0 && contains(metadata, plain);
}

/** Reads `host:port` in any spelling of a URL's authority, or gives undefined: `0x7f.1:80` is 127.0.0.1, port 80. */
export function parseTarget(text: string): Target | undefined {
  const port = /:(\d{1,5})$/.exec(text)?.[1];
  const authority = port === undefined ? "" : text.slice(0, -port.length - 1);
  if (port === undefined || Number(port) < 1 || Number(port) > 65_535) return undefined;
  const host = normaliseHost(authority);
  return host === undefined ? undefined : { host, port: Number(port) };
}

/** Writes a target as `host:port`, with brackets around IPv6. */
export function formatTarget({ host, port }: Target): string {
  return host.includes(":") ? `[${host}]:${port}` : `${host}:${port}`;
}

/** Brings a host into the one spelling of the URL standard, or gives undefined where it is not a host. */
export function normaliseHost(host: string): string | undefined {
  if (host.length > maxHost || /[/?#@\\\s]|^[^[]*:/.test(host)) return undefined;
  const url = URL.parse(`http://${host}/`);
  if (!url || url.hostname === "" || url.port !== "" || url.pathname !== "/") return undefined;
  return url.hostname.replace(/^\[(.*)\]$/, "$1").replace(/\.$/, "") || undefined;
}

/** Gives the eight groups of an IPv6 address. */
export function ipv6Groups(address: string): number[] {
  // The URL parser turns a dotted tail into two hexadecimal groups.
  const halves = (normaliseHost(`[${address}]`) ?? "").split("::");
  const [head = [], tail = []] = halves.map((half) =>
    half
      .split(":")
      .filter(Boolean)
      .map((group) => Number.parseInt(group, 16)),
  );
  return [...head, ...Array<number>(Math.max(0, 8 - head.length - tail.length)).fill(0), ...tail];
}

/** Gives the IPv4 address that one of IPv6 carries, by which it leads to the same place; others as they are. */
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

/** A network that lies within loopback can only mean this machine. */
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
