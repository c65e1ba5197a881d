import { expect, test } from "vitest";
import { type ProbeResult, WAY_NAMES, WAYS } from "./way-out.ts";
import { FORBIDDEN_ADDRESSES, RUNTIMES, runInOwnNetwork } from "./world.ts";

const PROBE = new URL("ways-out-probe.ts", import.meta.url);
const PROBE_MS = 90_000;
const EVERYTHING = WAY_NAMES.flatMap((way) => FORBIDDEN_ADDRESSES.map((address) => `${way} ${address}`)).sort();

/** What a relay must have seen of a page that tried: plain requests, and tunnels for the rest that uses a proxy. */
const SEEN_BY_RELAY = FORBIDDEN_ADDRESSES.flatMap((address) =>
  (["navigation", "fetch", "websocket"] as const).map((way) => `${address}:${WAYS[way].port}`),
);

async function probe(runtime: string, guard: string): Promise<ProbeResult> {
  return (await runInOwnNetwork(PROBE, [runtime, guard], PROBE_MS)) as ProbeResult;
}

test.each(RUNTIMES)(
  "a page of an unguarded %s reaches every address every way, so silence behind a guard means something",
  async (runtime) => {
    expect((await probe(runtime, "none")).arrivals).toEqual(EVERYTHING);
  },
  PROBE_MS,
);

test.each(RUNTIMES.flatMap((runtime) => ["namespace", "flags"].map((guard) => [runtime, guard] as const)))(
  "a page of %s behind %s reaches no forbidden address, and what is allowed",
  async (runtime, guard) => {
    const { arrivals, refusals, reachedAllowed } = await probe(runtime, guard);
    expect(arrivals).toEqual([]);
    expect(refusals).toEqual(expect.arrayContaining(SEEN_BY_RELAY));
    expect(reachedAllowed).toBe(true);
  },
  PROBE_MS,
);
