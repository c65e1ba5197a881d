import { describe, expect, test } from "vitest";
import {
  formatTarget,
  isAddressException,
  isMetadataHost,
  isPublicAddress,
  makeAddressRules,
  normaliseHost,
  parseTarget,
} from "../../src/platform/outgoing/address-rules.ts";
import { privateAddresses } from "../support/private-targets.ts";

describe("isPublicAddress", () => {
  test.each([
    ["8.8.8.8", true],
    ["1.1.1.1", true],
    ["172.15.255.255", true],
    ["172.32.0.0", true],
    ["100.63.255.255", true],
    ["223.255.255.255", true],
    ["2606:4700:4700::1111", true],
    ["::ffff:8.8.8.8", true],
    ["64:ff9b::808:808", true],
    ["localhost", false],
    ["", false],
  ])("%s: %s", (address, expected) => {
    expect(isPublicAddress(address)).toBe(expected);
  });

  test.each(privateAddresses)("%s: false", (address) => {
    expect(isPublicAddress(address)).toBe(false);
  });
});

describe("normaliseHost maps every spelling of an address to one form", () => {
  test.each([
    ["2130706433", "127.0.0.1"],
    ["0x7f000001", "127.0.0.1"],
    ["0x7f.1", "127.0.0.1"],
    ["0177.0.0.1", "127.0.0.1"],
    ["127.1", "127.0.0.1"],
    ["127.0.0.1.", "127.0.0.1"],
    ["%31%32%37.0.0.1", "127.0.0.1"],
    ["１２７.0.0.1", "127.0.0.1"],
    ["127。0。0。1", "127.0.0.1"],
    ["[::FFFF:127.0.0.1]", "::ffff:7f00:1"],
    ["[0:0:0:0:0:0:0:1]", "::1"],
    ["LocalHost.", "localhost"],
    ["bücher.example", "xn--bcher-kva.example"],
    ["[fe80::1%25eth0]", undefined],
    ["256.0.0.1", undefined],
    ["user@host", undefined],
    ["host/path", undefined],
    ["host:80", undefined],
    ["a b", undefined],
    ["", undefined],
  ])("%s: %s", (host, expected) => {
    expect(normaliseHost(host)).toBe(expected);
  });
});

describe("parseTarget", () => {
  test.each([
    ["example.com:443", "example.com:443"],
    ["0x7f.1:80", "127.0.0.1:80"],
    ["[::1]:8080", "[::1]:8080"],
    ["::1:80", undefined],
    ["example.com", undefined],
    ["example.com:65536", undefined],
    ["a@b:80", undefined],
    ["10.0.0.0/8", undefined],
    [":80", undefined],
  ])("%s: %s", (text, expected) => {
    const target = parseTarget(text);
    expect(target && formatTarget(target)).toBe(expected);
  });
});

describe("the operator's exceptions", () => {
  const rules = makeAddressRules({
    allow: [
      "10.1.0.0/16",
      "192.168.7.7",
      "fd00:1::/32",
      "intranet.example:8443",
      "localhost:3000",
      "[::1]:4000",
      "10.1.2.3:80",
      "127.3.0.0/16",
    ],
    ownAddresses: () => ["52.1.2.3", "10.1.2.3"],
  });

  test.each([
    ["10.1.255.1", true],
    ["::ffff:10.1.0.1", true],
    ["10.2.0.1", false],
    ["192.168.7.7", true],
    ["192.168.7.8", false],
    ["fd00:1::5", true],
    ["fd00:2::5", false],
    ["52.1.2.3", false],
    ["::ffff:52.1.2.3", false],
    ["52.1.2.4", true],
    ["10.1.2.3", false],
    ["::ffff:10.1.2.3", false],
    ["127.0.0.1", false],
    ["127.3.0.9", true],
  ])("address %s: %s", (address, expected) => {
    expect(rules.allowsAddress(address)).toBe(expected);
  });

  test.each([
    ["intranet.example:8443", true],
    ["INTRANET.example.:8443", true],
    ["intranet.example:443", false],
    ["localhost:3000", true],
    ["127.0.0.1:3000", false],
    ["10.1.2.3:80", true],
    ["10.1.2.3:81", false],
    ["[::1]:4000", true],
  ])("target %s: %s", (text, expected) => {
    const target = parseTarget(text);
    expect(target && rules.allowsTarget(target)).toBe(expected);
  });

  test.each(["10.0.0.0/33", "10.0.0/8", "example.com", "10.0.0.0/8/8", "", "fd00::/129"])(
    "%s is rejected with an error that names it",
    (entry) => {
      expect(() => makeAddressRules({ allow: [entry] })).toThrow(`"${entry}"`);
      expect(isAddressException(entry)).toBe(false);
    },
  );

  test("an exception for a network does not open this machine's own addresses in it, nor loopback", () => {
    const all = makeAddressRules({ allow: ["0.0.0.0/0", "::/0"], ownAddresses: () => ["52.1.2.3"] });
    expect(["10.0.0.1", "52.1.2.3", "127.0.0.1", "::1", "fd00::1"].filter(all.allowsAddress)).toEqual([
      "10.0.0.1",
      "fd00::1",
    ]);
  });
});

test.each([
  ["169.254.169.254", true],
  ["::ffff:169.254.169.254", true],
  ["168.63.129.16", true],
  ["100.100.100.200", true],
  ["fd00:ec2::254", true],
  ["metadata.google.internal", true],
  ["10.0.0.1", false],
  ["intranet.example", false],
])("%s is recognised as a cloud metadata host: %s", (host, expected) => {
  expect(isMetadataHost(host)).toBe(expected);
});
