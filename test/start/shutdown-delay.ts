import { expect, test } from "vitest";
import { waitUntil } from "../../src/platform/bounded-wait.ts";
import type { DeployedGateway } from "../support/deployment.ts";

/** The end of a gateway that has this SHUTDOWN_DELAY. */
export function shutdownDelayTest(
  delaySeconds: number,
  sceneOf: () => { gateway: DeployedGateway; key: string },
): void {
  test("a gateway serves new connections for SHUTDOWN_DELAY after SIGTERM with /readyz 503, then exits", async () => {
    const { gateway, key } = sceneOf();
    const signalledAt = performance.now();
    gateway.signal("SIGTERM");
    const readiness = async (): Promise<number> => (await fetch(`${gateway.internalUrl}/readyz`)).status;
    expect(await waitUntil(async () => (await readiness()) === 503, { timeout: 2_000, every: 20 })).toBe(true);

    const response = await fetch(`${gateway.url}/v1/sessions`, {
      headers: { authorization: `Bearer ${key}`, connection: "close" },
    });
    expect([response.status, await readiness()]).toEqual([200, 503]);
    expect(await waitUntil(() => gateway.exitCode !== null, { timeout: 40_000, every: 50 })).toBe(true);
    expect([gateway.exitCode, performance.now() - signalledAt >= delaySeconds * 1_000]).toEqual([0, true]);
    await expect(fetch(gateway.url)).rejects.toThrow();
  }, 120_000);
}
