import { once } from "node:events";
import { type AddressInfo, createServer, type Server } from "node:net";
import { makeAddressRules } from "../../src/platform/outgoing/address-rules.ts";
import { EgressRelay } from "../../workers/egress/egress-relay.ts";

// Runs the relays of three sessions: without a proxy, behind an HTTP proxy, and behind a SOCKS proxy. The hostile site
// and proxies respond with the bytes that the request encodes as `x<hex>x`. Prints all ports.

async function listen(server: Server): Promise<number> {
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return (server.address() as AddressInfo).port;
}

const hostile = createServer((socket) => {
  socket.on("error", () => undefined);
  socket.on("data", (bytes) => {
    const answer = /x((?:[0-9a-f]{2})*)x/.exec(bytes.toString("latin1"))?.[1];
    if (answer !== undefined) socket.write(Buffer.from(answer, "hex"));
    // After a SOCKS 5 greeting, the client sends the request with the host name.
    else if (bytes[0] === 5) socket.write(Buffer.from([5, 0]));
    else socket.end();
  });
});

const site = await listen(hostile);
const rules = makeAddressRules({ allow: [`127.0.0.1:${site}`] });
const complain = (level: number) => (object: object, message: string) =>
  void process.stdout.write(`${JSON.stringify({ level, message, error: Reflect.get(object, "err")?.stack })}\n`);
const log = { debug: () => undefined, info: () => undefined, warn: () => undefined, error: complain(50) };

async function startRelay(scheme?: "http" | "socks5"): Promise<number> {
  const resolve = async () => {
    if (scheme) return [{ address: "93.184.215.14", family: 4 }];
    throw Object.assign(new Error("no such name"), { code: "ENOTFOUND" });
  };
  const relay = new EgressRelay({ rules, log, resolve });
  const server = `${scheme}://127.0.0.1:${site}`;
  const proxy = { server, username: "u", password: "p" } as Parameters<EgressRelay["useUpstream"]>[0];
  if (scheme) relay.useUpstream(proxy, { check: "check.example:443", onChange: () => undefined });
  return listen(createServer((socket) => relay.accept(socket)));
}

const ports = { site, direct: await startRelay(), http: await startRelay("http"), socks5: await startRelay("socks5") };
process.stdout.write(`${JSON.stringify(ports)}\n`);
