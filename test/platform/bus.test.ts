import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type Bus, createLocalBus } from "../../src/platform/bus.ts";
import { connectBus } from "../support/connect-bus.ts";
import { RedisServer } from "../support/redis-server.ts";

let server: RedisServer;

beforeAll(async () => {
  server = await RedisServer.start();
});
afterAll(() => server[Symbol.asyncDispose]());

const kinds: [kind: string, make: () => Promise<[Bus, Bus]>][] = [
  [
    "of a single gateway",
    async () => {
      const bus = createLocalBus();
      return [bus, bus];
    },
  ],
  ["of two gateways", async () => [await connectBus(server), await connectBus(server)]],
];

const soon = { timeout: 10_000, interval: 5 };

describe.each(kinds)("the bus %s", (_kind, make) => {
  test("delivers each message once to every gateway, in order", async () => {
    const [one, other] = await make();
    const received: Record<"one" | "other", string[]> = { one: [], other: [] };
    one.subscribe("session-ended", (id) => received.one.push(id));
    other.subscribe("session-ended", (id) => received.other.push(id));
    for (const id of ["a", "b c", ""]) one.publish("session-ended", id);
    other.publish("session-ended", "z");
    await expect.poll(() => received.one, soon).toEqual(["a", "b c", "", "z"]);
    await expect.poll(() => [...received.other].sort(), soon).toEqual(["", "a", "b c", "z"]);
  });

  test("delivers to the publishing gateway before publish returns", async () => {
    const [one] = await make();
    const received: string[] = [];
    one.subscribe("bearer-changed", (id) => received.push(id));
    one.publish("bearer-changed", "key_1");
    expect(received).toEqual(["key_1"]);
  });

  test("separates channels and stops delivery after a subscription ends", async () => {
    const [one, other] = await make();
    const received: string[] = [];
    const unsubscribe = other.subscribe("session-changed", (id) => received.push(id));
    other.subscribe("session-ended", (id) => received.push(`end of ${id}`));
    one.publish("capacity", "");
    one.publish("session-changed", "a");
    await expect.poll(() => received, soon).toEqual(["a"]);
    unsubscribe();
    one.publish("session-changed", "b");
    one.publish("session-ended", "c");
    await expect.poll(() => received, soon).toEqual(["a", "end of c"]);
  });
});
