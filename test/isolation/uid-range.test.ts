import { expect, test } from "vitest";
import { chooseUidBase } from "../../workers/slots/uid-range.ts";

const MACHINE = "         0          0 4294967295\n";
const CONTAINER = "         0     100000      65536\n";
const TWO_RANGES = "         0       1000          1\n         1     100000      65536\n";
const ALONE = "         0          0          1\n";

test.each([
  ["a machine", MACHINE, MACHINE, 200_000],
  ["a container with 65,536 uids", CONTAINER, CONTAINER, 32_768],
  ["a rootless container", TWO_RANGES, TWO_RANGES, 32_768],
  ["a container with too few gids", CONTAINER, ALONE, undefined],
  ["a user namespace of one uid", ALONE, ALONE, undefined],
])("in %s the uids of slots begin where all of them exist", (_where, uidMap, gidMap, expected) => {
  expect(chooseUidBase(uidMap, gidMap)).toBe(expected);
});
