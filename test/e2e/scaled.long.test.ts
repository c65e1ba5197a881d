import { expect, test } from "vitest";
import { type DeployedGateway, Deployment } from "../support/deployment.ts";

test("streams of a session are counted across gateways, and those of a dead gateway no longer count", async () => {
  await using deployment = await Deployment.start({ workers: 0 });
  await deployment.fakeWorker();
  const [one, other] = [deployment.gateway(0), deployment.gateway(1)];
  const session = `/v1/sessions/${(await one.rest("/v1/sessions", {})).body.id}`;
  const open = ({ url }: DeployedGateway, signal: AbortSignal): Promise<Response> => {
    const headers = { authorization: `Bearer ${deployment.key}` };
    return fetch(`${url}${session}/events`, { headers, signal });
  };
  const tryToOpen = async (gateway: DeployedGateway): Promise<number> => {
    const over = new AbortController();
    const { status } = await open(gateway, over.signal).finally(() => over.abort());
    return status;
  };
  const over = new AbortController();
  const half = Array.from({ length: 8 });
  const opened = await Promise.all([one, other].flatMap((gateway) => half.map(() => open(gateway, over.signal))));
  expect(opened.filter(({ status }) => status !== 200)).toEqual([]);
  // If Redis was slow, a stream is registered some seconds later.
  const soon = { timeout: 20_000, interval: 200 };
  await expect.poll(() => tryToOpen(one), soon).toBe(429);
  await expect.poll(() => tryToOpen(other), soon).toBe(429);
  await one.kill();
  await expect.poll(() => tryToOpen(other), soon).toBe(200);
  over.abort();
  // Keeps the responses until here: a garbage-collected response closes its stream.
  await Promise.allSettled(opened.map((answer) => answer.text()));
}, 90_000);
