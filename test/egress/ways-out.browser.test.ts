import { expect, test } from "vitest";
import { elsewhere, type ProbeResult, ways } from "../isolation/way-out.ts";
import { forbiddenAddresses, runInOwnNetwork } from "../isolation/world.ts";

const probe = new URL("../isolation/ways-out-probe.ts", import.meta.url);
const probeMs = 90_000;

/** Requests that the relay must have received from the page: plain ones, and tunnels for all other kinds. */
const seenByRelay = forbiddenAddresses.flatMap((address) =>
  (["navigation", "fetch", "websocket"] as const).map((way) => `${address}:${ways[way].port}`),
);

const isForbidden = (request: string): boolean => forbiddenAddresses.some((address) => request.includes(address));

// test/isolation shows that the same listener receives each kind from an unguarded browser.
// One runtime is enough, because a browser's requests to its relay are independent of the destination.
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
