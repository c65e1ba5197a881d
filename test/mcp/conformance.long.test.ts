import { execFile } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { createServer, request, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import type { McpClient } from "../../gateway/mcp/tool-server.ts";
import { startTestGateway, type TestGateway } from "../support/test-gateway.ts";
import { createFixtureServer } from "./fixtures.ts";

const suite = resolve("node_modules/@modelcontextprotocol/conformance/dist/index.js");

/** Scenarios that need no fixtures. */
const plain = ["server-initialize", "ping", "tools-list", "dns-rebinding-protection"];

/**
 * Scenarios that need sessions of the protocol, which revision 2026-07-28 has removed: requests of the server to the
 * client, subscriptions, and resumed streams.
 */
const needsSessions = [
  "tools-call-sampling",
  "tools-call-elicitation",
  "elicitation-sep1034-defaults",
  "elicitation-sep1330-enums",
  "server-sse-polling",
  "server-sse-multiple-streams",
  "resources-subscribe",
  "resources-unsubscribe",
];

/** Header of requests that the server with fixtures answers. */
const fixtureHeader = "x-fixtures";

let gateway: TestGateway;
let directory: string;
const proxies: Server[] = [];
/** Addresses of proxies to our tools and to the fixtures. */
let own: string;
let fixtures: string;

/** Starts a proxy that adds headers, because the suite sends no key. Returns its address. */
async function startProxy(added: Readonly<Record<string, string>>): Promise<string> {
  const { hostname, port } = new URL(gateway.url);
  const proxy = createServer((incoming, outgoing) => {
    const { method = "GET", url = "/" } = incoming;
    const headers = { ...incoming.headers, ...added };
    const asked = request({ hostname, port, method, path: url, headers }, (answer) => {
      outgoing.writeHead(answer.statusCode ?? 502, answer.headers);
      answer.pipe(outgoing);
    });
    asked.on("error", () => outgoing.destroy());
    incoming.pipe(asked);
  });
  proxies.push(proxy.listen(0, "127.0.0.1"));
  await once(proxy, "listening");
  return `http://127.0.0.1:${(proxy.address() as AddressInfo).port}/mcp`;
}

beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), "conformance-"));
  const createMcpServer = ({ peer }: McpClient) => (peer.header(fixtureHeader) ? createFixtureServer() : undefined);
  gateway = await startTestGateway({}, { gateway: { createMcpServer } });
  const authorization = `Bearer ${await gateway.addAccount()}`;
  own = await startProxy({ authorization });
  fixtures = await startProxy({ authorization, [fixtureHeader]: "yes" });
}, 400_000);

afterAll(async () => {
  for (const proxy of proxies) {
    proxy.closeAllConnections();
    proxy.close();
  }
  await gateway?.[Symbol.asyncDispose]();
  await rm(directory, { recursive: true, force: true });
}, 60_000);

/** Runs scenarios. Returns the output if the suite fails. */
function failureOf(url: string, ...parameters: string[]): Promise<string | undefined> {
  const options = { cwd: directory, timeout: 500_000 };
  return new Promise((done) => {
    execFile(process.execPath, [suite, "server", "--url", url, ...parameters], options, (error, stdout, stderr) =>
      done(error ? `${stdout}${stderr}`.slice(-5_000) : undefined),
    );
  });
}

test.each(plain)(
  "our tools pass the scenario %s",
  async (scenario) => {
    expect(await failureOf(own, "--scenario", scenario)).toBeUndefined();
  },
  120_000,
);

test("with fixtures, the same mount passes all scenarios except those that need sessions", async () => {
  const baseline = join(directory, "expected-failures.yml");
  await writeFile(baseline, ["server:", ...needsSessions.map((name) => `  - ${name}`)].join("\n"));
  // The suite also fails if an expected failure passes.
  expect(await failureOf(fixtures, "--suite", "all", "--expected-failures", baseline)).toBeUndefined();
}, 600_000);
