import type { Resolve } from "../../src/platform/outgoing/target-resolution.ts";

/** Addresses as a resolver returns them, all outside the public internet. */
export const privateAddresses: readonly string[] = [
  "0.0.0.0",
  "0.1.2.3",
  "10.0.0.0",
  "10.255.255.255",
  "100.64.0.1",
  "100.100.100.200",
  "127.0.0.1",
  "127.255.255.254",
  "168.63.129.16",
  "169.254.169.254",
  "172.16.0.1",
  "172.31.255.255",
  "192.0.0.192",
  "192.0.2.1",
  "192.88.99.1",
  "192.168.1.1",
  "198.18.0.1",
  "198.51.100.1",
  "203.0.113.1",
  "224.0.0.1",
  "255.255.255.255",
  "::",
  "::1",
  "::127.0.0.1",
  "::ffff:127.0.0.1",
  "::ffff:a00:1",
  "::ffff:0:0",
  "64:ff9b::7f00:1",
  "64:ff9b::",
  "64:ff9b:1::1",
  "2001::1",
  "2001:db8::1",
  "2002:7f00:1::",
  "3fff::1",
  "fc00::1",
  "fd00:ec2::254",
  "fe80::1",
  "fe80::1%eth0",
  "fec0::1",
  "ff02::1",
];

const addressOfName: Readonly<Record<string, string>> = {
  localhost: "127.0.0.1",
  "app.localhost": "127.0.0.1",
  "printer.local": "192.168.1.9",
  intranet: "10.0.0.2",
  "metadata.google.internal": "169.254.169.254",
  "private.example": "10.0.0.1",
  "metadata.example": "169.254.169.254",
};

/** Hosts as URLs spell them, literals and names, all outside the public internet. */
export const privateHosts: readonly string[] = [
  ...Object.keys(addressOfName),
  "localhost.",
  "LocalHost",
  "127.0.0.1",
  "127.0.0.1.",
  "127.1",
  "0",
  "0x7f.1",
  "0x7f000001",
  "0177.0.0.1",
  "2130706433",
  "0xa9fea9fe",
  "10.1.2.3",
  "169.254.169.254",
  "100.100.100.200",
  "[::]",
  "[::1]",
  "[0:0:0:0:0:0:0:1]",
  "[::ffff:7f00:1]",
  "[::FFFF:127.0.0.1]",
  "[::ffff:10.0.0.1]",
  "[64:ff9b::a9fe:a9fe]",
  "[2002:7f00:1::]",
  "[fd00:ec2::254]",
  "[fe80::1]",
];

/** Hosts that HTTP lines cannot contain. Browsers and URL parsers normalise them to one of the spellings above. */
export const privateHostsOfUrls: readonly string[] = ["%31%32%37.0.0.1", "１２７.0.0.1", "①②⑦.0.0.1", "127。0。0。1"];

/** Resolves the names of these lists only. */
export const resolvePrivate: Resolve = async (name) => {
  const address = addressOfName[name];
  if (address === undefined) throw Object.assign(new Error(`no ${name}`), { code: "ENOTFOUND" });
  return [{ address, family: 4 }];
};
