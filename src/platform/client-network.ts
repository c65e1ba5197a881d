import { isIPv6, SocketAddress } from "node:net";

/** Length of network prefixes in bits. */
interface NetworkSize {
  readonly v4: 24 | 32;
  readonly v6: 48 | 64;
}

/**
 * Returns the network of a client address, such as `192.0.2.0/24` or `2001:db8:1:0::/64`. If `v4` is 32, the network of
 * an IPv4 address is the address itself, without a suffix.
 */
export function networkOf(address: string, { v4, v6 }: NetworkSize): string {
  const [plain = ""] = address.split("%", 1);
  if (!isIPv6(plain)) return networkOfV4(address, v4);
  const canonical = new SocketAddress({ address: plain, family: "ipv6" }).address;
  const mapped = /^::ffff:(\d+\.\d+\.\d+\.\d+)$/.exec(canonical)?.[1];
  if (mapped !== undefined) return networkOfV4(mapped, v4);
  const [head = "", tail] = canonical.split("::");
  const left = head === "" ? [] : head.split(":");
  const right = tail ? tail.split(":") : [];
  const zeros = tail === undefined ? 0 : 8 - left.length - right.length;
  const groups = [...left, ...Array<string>(zeros).fill("0"), ...right].slice(0, v6 / 16);
  return `${groups.join(":")}::/${v6}`;
}

function networkOfV4(address: string, bits: 24 | 32): string {
  return bits === 32 ? address : address.replace(/\d+$/, "0/24");
}
