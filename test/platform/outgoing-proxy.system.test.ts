import { once } from "node:events";
import { readFileSync, writeFileSync } from "node:fs";
import https from "node:https";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { afterAll, beforeAll, beforeEach, expect, onTestFinished, test } from "vitest";
import { readConfig } from "../../src/platform/config.ts";
import { readOutgoingOptions } from "../../src/platform/outgoing/outgoing-options.ts";
import { createSender } from "../../src/webhooks/sender.ts";
import { CertificateAuthority } from "../support/certificates.ts";
import { makeDataDirectory } from "../support/database.ts";
import { proxyLogin, type RealProxy, startSquid } from "../support/proxies.ts";
import { ProxyStandIn } from "../support/proxy-stand-in.ts";
import { type SessionsApp, startSessionsApp } from "../support/sessions-app.ts";

const name = "provider.example";
const privateAddresses = [
  "https://10.0.0.1/",
  "https://[::1]:8443/",
  "https://169.254.169.254/",
  "https://printer.local/",
  "https://intranet/",
];
const otherRefused = ["http://public.example/", "https://public.example:22/"];
const stripe = { STRIPE_SECRET_KEY: "sk_test_1", STRIPE_WEBHOOK_SECRET: "whsec_1" };

let authority: CertificateAuthority;
let site: https.Server;
let url: string;
let proxy: RealProxy;
let running: SessionsApp;
let env: Record<string, string>;
/** Paths of the requests that the site has received. */
const received: (string | undefined)[] = [];

beforeAll(async () => {
  authority = new CertificateAuthority();
  const { cert, key, ca } = authority.issue(name);
  site = https.createServer({ cert: readFileSync(cert), key: readFileSync(key) }, (request, response) => {
    received.push(request.url);
    response.writeHead(200, { "content-type": "application/json" }).end(JSON.stringify({ object: "balance" }));
  });
  site.listen(0, "127.0.0.1");
  await once(site, "listening");
  url = `https://${name}:${(site.address() as AddressInfo).port}`;
  proxy = await startSquid({ login: true, names: [name] });
  const [username, password] = [proxyLogin.username, proxyLogin.password].map(encodeURIComponent);
  env = { OUTGOING_PROXY: `http://${username}:${password}@127.0.0.1:${proxy.port}`, OUTGOING_CA_FILE: ca };
  running = await startSessionsApp({ ...env, ...stripe, STRIPE_URL: url });
}, 60_000);
afterAll(async () => {
  await running?.[Symbol.asyncDispose]();
  await proxy?.stop();
  site?.closeAllConnections();
  site?.close();
  authority?.[Symbol.dispose]();
});
beforeEach(() => void received.splice(0));

function deliver(sender: Pick<SessionsApp["app"]["sender"], "send">, to: string) {
  const event = { id: "evt_1", type: "session.completed", createdAt: new Date(), body: "{}" };
  return sender.send({ url: to, secrets: ["whsec_AAAA"], event }, new AbortController().signal);
}

test("webhooks, LLM providers and Stripe are called through the proxy, which resolves their names", async () => {
  const { sender, models, processors } = running.app;
  expect(await deliver(sender, `${url}/webhook`)).toMatchObject({ status: 200 });
  await models.check(`${url}/v1`);
  const model = await models.of({ provider: "openai_compatible", apiKey: "key", baseUrl: `${url}/v1` }, "any");
  if (typeof model === "string") throw new Error("expected a model");
  const prompt = [{ role: "user" as const, content: [{ type: "text" as const, text: "Hello" }] }];
  await Promise.resolve(model.doGenerate({ prompt })).catch(() => undefined);
  await processors.card?.client.balance.retrieve();
  expect(received).toEqual(["/webhook", "/v1/chat/completions", "/v1/balance"]);
  // Squid logs a tunnel when it has closed.
  const { host } = new URL(url);
  await expect.poll(() => proxy.log().split(`CONNECT ${host}`).length - 1).toBe(3);
});

/** Creates a sender with other variables. */
function senderWith(changes: Record<string, string>, webhookAllow: readonly string[] = []) {
  const way = readOutgoingOptions(readConfig({ ...env, ...changes }));
  return createSender({ config: { webhookAllow }, ...way });
}

test("refuses private addresses before the proxy is asked, and reaches allowed ones without the proxy", async () => {
  const local = new URL(url.replace(name, "127.0.0.1"));
  const standIn = new ProxyStandIn(Number(local.port));
  onTestFinished(() => standIn.stop());
  const way = { OUTGOING_PROXY: `http://127.0.0.1:${await standIn.start()}` };
  using closed = disposable(senderWith(way));
  for (const address of [...privateAddresses, ...otherRefused])
    expect(await deliver(closed, address), address).toMatchObject({ error: "address_not_allowed" });
  expect(standIn.asked).toEqual([]);
  using open = disposable(senderWith(way, ["127.0.0.1"]));
  // The certificate is issued for the loopback address too.
  expect(await deliver(open, `${local.origin}/direct`)).toMatchObject({ status: 200 });
  expect(standIn.asked).toEqual([]);
  expect(await deliver(open, `${url}/proxied`)).toMatchObject({ status: 200 });
  expect(standIn.asked).toEqual([`CONNECT ${new URL(url).host}`]);
  expect(received).toEqual(["/direct", "/proxied"]);
});

test("reports a proxy that refuses or does not listen as an unreachable server", async () => {
  for (const address of [`http://127.0.0.1:${proxy.port}`, "http://127.0.0.1:9"]) {
    using sender = disposable(senderWith({ OUTGOING_PROXY: address }));
    expect(await deliver(sender, `${url}/webhook`)).toMatchObject({ error: "unreachable" });
  }
  expect(received).toEqual([]);
});

test("does not trust the server without the file of authorities, and does not start with a file of other content", async () => {
  using sender = disposable(senderWith({ OUTGOING_CA_FILE: "" }));
  expect(await deliver(sender, `${url}/webhook`)).toMatchObject({ error: "tls" });
  const file = join(await makeDataDirectory(), "authorities.pem");
  writeFileSync(file, "no certificate");
  expect(() => senderWith({ OUTGOING_CA_FILE: file })).toThrow(/^OUTGOING_CA_FILE cannot be used: /);
});

const disposable = <T extends { stop(): void }>(part: T): T & Disposable =>
  Object.assign(part, { [Symbol.dispose]: () => part.stop() });
