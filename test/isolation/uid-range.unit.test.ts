import { expect, test } from "vitest";
import { chooseUidBase } from "../../workers/isolation/uid-range.ts";

const machine = "         0          0 4294967295\n";
const container = "         0     100000      65536\n";
const twoRanges = "         0       1000          1\n         1     100000      65536\n";
const alone = "         0          0          1\n";

test.each([
  ["a machine", machine, machine, 200_000],
  ["a container with 65,536 uids", container, container, 32_768],
  ["a rootless container", twoRanges, twoRanges, 32_768],
  ["a container with too few gids", container, alone, undefined],
  ["a user namespace of one uid", alone, alone, undefined],
])("chooses the first uid range that is fully mapped in %s", (_where, uidMap, gidMap, expected) => {
  expect(chooseUidBase(uidMap, gidMap)).toBe(expected);
});
