import { isIPv6 } from "node:net";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import type { Resolve } from "../../src/platform/outgoing/target-resolution.ts";
import { createSender, type DeliveryResponse, type Sender } from "../../src/webhooks/sender.ts";
import { privateAddresses, privateHosts, privateHostsOfUrls, resolvePrivate } from "../support/private-targets.ts";
import { startTestGateway, type TestGateway } from "../support/test-gateway.ts";
import { closeAfterTest, type Receiver, startReceiver } from "./receiver.ts";
import { readLog, register } from "./scene.ts";

const event = { id: "evt_1", type: "session.completed", createdAt: new Date(), body: '{"id":"evt_1"}' };
const publicAddress = { address: "93.184.215.14", family: 4 };

/** Receiver at every loopback address, which must not receive a connection. */
let receiver: Receiver;

beforeEach(async () => {
  receiver = await startReceiver();
});

function makeSender(resolve: Resolve, webhookAllow: readonly string[] = []): Sender {
  const sender = createSender({ config: { webhookAllow }, resolve });
  closeAfterTest(() => sender.stop());
  return sender;
}

const send = (sender: Sender, url: string): Promise<DeliveryResponse> =>
  sender.send({ url, secrets: [`whsec_${"A".repeat(32)}`], event }, new AbortController().signal);

const asAddress = (address: string) => ({ address, family: isIPv6(address) ? 6 : 4 });

/** Expects that registration and delivery both refuse a URL, without a connection to the receiver. */
async function expectRefused(resolve: Resolve, url: string, words = "is not on the public internet"): Promise<void> {
  const sender = makeSender(resolve);
  await expect(sender.check(url)).rejects.toMatchObject({
    slug: "bad-request",
    message: expect.stringContaining(words),
  });
  expect(await send(sender, url)).toMatchObject({ error: "address_not_allowed" });
  expect(receiver.connections()).toBe(0);
}

test.each([...privateHosts, ...privateHostsOfUrls])("refuses %s at registration and at delivery", async (host) => {
  await expectRefused(resolvePrivate, `https://${host}:${receiver.port}/hook`);
});

test.each(privateAddresses)("refuses a name that resolves to %s, alone or among other addresses", async (address) => {
  const url = `https://hooks.example.com:${receiver.port}/`;
  await expectRefused(async () => [asAddress(address)], url);
  await expectRefused(async () => [publicAddress, asAddress(address)], url);
});

test("refuses an unresolvable private name but accepts any other unresolvable name", async () => {
  const nowhere: Resolve = () => Promise.reject(Object.assign(new Error("no name"), { code: "ENOTFOUND" }));
  for (const host of ["metadata.google.internal", "printer.local", "intranet"]) {
    await expectRefused(nowhere, `https://${host}/`);
  }
  const sender = makeSender(nowhere);
  await expect(sender.check("https://soon.example.com/hook")).resolves.toBeUndefined();
  expect(await send(sender, "https://soon.example.com/hook")).toMatchObject({ error: "name_not_resolved" });
});

test.each([
  ["http://hooks.example.com:8443/", "does not start with https://"],
  ["http://soon.example.com/", "does not start with https://"],
  ["https://ada:secret@hooks.example.com/", "contains a user name or password"],
  ["https://hooks.example.com:22/", "has a port below 1024 other than 443"],
  ["https://hooks.example.com:1023/", "has a port below 1024 other than 443"],
  ["ftp://hooks.example.com/", "is not an https URL"],
  ["hooks.example.com", "is not an https URL"],
])("refuses %s, which %s", async (url, words) => {
  const resolve: Resolve = async (name) => (name.startsWith("soon") ? resolvePrivate(name) : [publicAddress]);
  await expectRefused(resolve, url, words);
});

test("refuses at delivery a name that changed to a private address after its registration", async () => {
  const answers = [[publicAddress], [asAddress("127.0.0.1")], [asAddress("::ffff:127.0.0.1")]];
  const sender = makeSender(async () => answers.shift() ?? []);
  const url = `https://hooks.example.com:${receiver.port}/`;
  await sender.check(url);
  for (let attempt = 0; attempt < 2; attempt += 1) {
    expect(await send(sender, url)).toMatchObject({ error: "address_not_allowed" });
  }
  expect([answers, receiver.connections()]).toEqual([[], 0]);
});

test("resolves a name once per attempt, so that it cannot change between check and use", async () => {
  const asked: string[] = [];
  const resolve: Resolve = async (name) => {
    asked.push(name);
    return [asAddress(asked.length === 1 ? "127.0.0.1" : "127.0.0.9")];
  };
  const sender = makeSender(resolve, ["127.0.0.1"]);
  expect(await send(sender, `http://hooks.example.com:${receiver.port}/`)).toMatchObject({ status: 200 });
  expect(await send(sender, `http://hooks.example.com:${receiver.port}/`)).toMatchObject({
    error: "address_not_allowed",
  });
  expect([asked.length, receiver.received.length]).toEqual([2, 1]);
});

test("does not follow redirects", async () => {
  const there = `http://127.0.0.1:${receiver.port}/`;
  const turning = await startReceiver((_request, response) => void response.writeHead(308, { location: there }).end());
  const sender = makeSender(resolvePrivate, ["127.0.0.0/8"]);
  expect(await send(sender, `http://127.0.0.1:${turning.port}/`)).toMatchObject({ status: 308 });
  expect([turning.connections(), receiver.connections()]).toEqual([1, 0]);
});

test("reaches only targets allowed by the operator without TLS", async () => {
  const sender = makeSender(resolvePrivate, [`localhost:${receiver.port}`]);
  await sender.check(`http://localhost:${receiver.port}/`);
  expect(await send(sender, `http://localhost:${receiver.port}/`)).toMatchObject({ status: 200 });
  for (const url of [`http://127.0.0.1:${receiver.port}/`, "http://localhost:2000/", "https://localhost/"]) {
    await expect(sender.check(url)).rejects.toMatchObject({ slug: "bad-request" });
  }
});

describe("through the API", () => {
  const nameOf = (address: string): string => `to-${Buffer.from(address).toString("hex")}.example`;
  const led = new Map(privateAddresses.map((address) => [nameOf(address), address]));
  let gateway: TestGateway;

  const resolve: Resolve = async (name) => {
    const address = led.get(name);
    return address === undefined ? resolvePrivate(name) : [asAddress(address)];
  };
  beforeAll(async () => {
    gateway = await startTestGateway({}, { resolve });
  }, 60_000);
  afterAll(() => gateway?.[Symbol.asyncDispose]());

  test("a private target cannot be registered in any spelling or by any name", async () => {
    const hosts = [...privateHosts, ...privateHostsOfUrls, ...privateAddresses.map(nameOf)];
    const answers = await Promise.all(
      hosts.map((host) => gateway.rest("/v1/webhooks", { url: `https://${host}:${receiver.port}/` })),
    );
    const refusal = [{ field: "url", message: "is not on the public internet" }];
    expect(answers.map(({ status, body }, index) => [hosts[index], status, body.errors])).toEqual(
      hosts.map((host) => [host, 400, refusal]),
    );
    expect((await gateway.rest("/v1/webhooks")).body.data).toEqual([]);
    expect(receiver.connections()).toBe(0);
  });

  test("a name is resolved and checked again at each delivery", async () => {
    led.set("hooks.example.com", publicAddress.address);
    const id = await register(gateway.rest, `https://hooks.example.com:${receiver.port}/`);
    led.set("hooks.example.com", "127.0.0.1");
    const { body: sent } = await gateway.rest(`/v1/webhooks/${id}/test`, {});
    const logged = async () => (await readLog(gateway.rest, id))[0];
    await expect.poll(logged, { timeout: 20_000 }).toMatchObject({
      id: sent.delivery_id,
      status: "dlq",
      attempts: [{ number: 1, response_status: null, error: "address_not_allowed" }],
    });
    expect(receiver.connections()).toBe(0);
  });
});
