import { expect, test } from "vitest";
import { Demand } from "../../workers/pool/demand.ts";

test.each([
  ["none was requested", 0, 1],
  ["one was requested", 1, 1],
  ["one was requested every 2 s", 15, 3],
  ["seven were requested every second", 210, 8],
])("the pool keeps as many browsers as 5 s require when %s", (_, asked, target) => {
  const demand = new Demand(1, 8);
  for (let count = 0; count < asked; count += 1) demand.record(1_000);
  expect([demand.target(1_000), demand.target(30_999), demand.target(31_000)]).toEqual([target, target, 1]);
});
