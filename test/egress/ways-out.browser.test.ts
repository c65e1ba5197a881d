import { expect, test } from "vitest";
import { elsewhere, type ProbeResult, ways } from "../isolation/way-out.ts";
import { forbiddenAddresses, runInOwnNetwork } from "../isolation/world.ts";

const probe = new URL("../isolation/ways-out-probe.ts", import.meta.url);
const probeMs = 90_000;

/** What a relay must have seen of a page that tried: plain requests, and tunnels for the rest that uses a proxy. */
const seenByRelay = forbiddenAddresses.flatMap((address) =>
  (["navigation", "fetch", "websocket"] as const).map((way) => `${address}:${ways[way].port}`),
);

const isForbidden = (request: string): boolean => forbiddenAddresses.some((address) => request.includes(address));

// That the same listener hears an unguarded browser every way is seen in test/isolation.
// One runtime is enough here: what a browser asks its relay for does not depend on where that leads.
test(
  "a page behind a customer's proxy reaches no forbidden address, and the proxy receives no such request",
  async () => {
    const { arrivals, refusals, asked, reachedAllowed } = (await runInOwnNetwork(
      probe,
      ["headless-shell", "proxy"],
      probeMs,
    )) as ProbeResult;
    expect(arrivals).toEqual([]);
    expect(refusals).toEqual(expect.arrayContaining(seenByRelay));
    expect(asked.before.filter(isForbidden)).toEqual([]);
    expect(asked.after).toEqual([`GET ${elsewhere}`]);
    expect(reachedAllowed).toBe(true);
  },
  probeMs,
);
