import { expect, test } from "vitest";
import { withLong } from "../support/long-test.ts";
import { runtimes } from "../support/runtimes.ts";
import { type ProbeResult, wayNames, ways } from "./way-out.ts";
import { forbiddenAddresses, runInOwnNetwork } from "./world.ts";

const probeProgram = new URL("ways-out-probe.ts", import.meta.url);
const probeMs = 90_000;
const everything = wayNames.flatMap((way) => forbiddenAddresses.map((address) => `${way} ${address}`)).sort();

/** Entries that the relay must have recorded: plain requests, and tunnels for other channels that use a proxy. */
const seenByRelay = forbiddenAddresses.flatMap((address) =>
  (["navigation", "fetch", "websocket"] as const).map((way) => `${address}:${ways[way].port}`),
);

async function probe(runtime: string, guard: string): Promise<ProbeResult> {
  return (await runInOwnNetwork(probeProgram, [runtime, guard], probeMs)) as ProbeResult;
}

// Each run has its own network and mostly waits for arrivals that must not occur.
const options = { concurrent: true, timeout: probeMs };

test.each(withLong([], runtimes))(
  "a page of an unguarded %s reaches every address by every channel (control experiment)",
  options,
  async (runtime) => {
    expect((await probe(runtime, "none")).arrivals).toEqual(everything);
  },
);

const guards = runtimes.flatMap((runtime) =>
  withLong(["namespace"], ["flags", "client"]).map((guard) => [runtime, guard] as const),
);

test.each(guards)(
  "a page of %s behind %s reaches allowed addresses and no forbidden one",
  options,
  async (runtime, guard) => {
    const { arrivals, refusals, reachedAllowed } = await probe(runtime, guard);
    expect(arrivals).toEqual([]);
    expect(refusals).toEqual(expect.arrayContaining(seenByRelay));
    expect(reachedAllowed).toBe(true);
  },
);
