import { execFileSync } from "node:child_process";
import { once } from "node:events";
import { createServer, type Server } from "node:net";
import { afterAll, beforeAll, expect, onTestFinished, test } from "vitest";
import type { OwnCdpScene } from "../support/cdp-proxy-scene.ts";
import { freePorts } from "../support/free-port.ts";
import {
  type Certificate,
  proxyLogin,
  type RealProxy,
  startDante,
  startSquid,
  startTinyproxy,
} from "../support/proxies.ts";
import type { Answer } from "../support/rest.ts";

/**
 * Sessions behind real proxies. The service is new, trusts the certificate, checks proxies by the scene's site, and has
 * two slots.
 */
export function realProxyTests(sceneOf: () => OwnCdpScene, certificateOf: () => Certificate): void {
  let scene: OwnCdpScene;
  let hole: Server;
  let closed: number;
  let swallowed: Promise<Answer[]>;
  const proxies: RealProxy[] = [];

  async function keep(starting: Promise<RealProxy>): Promise<RealProxy> {
    const proxy = await starting;
    proxies.push(proxy);
    return proxy;
  }

  let tinyproxy: RealProxy;
  let refusing: RealProxy;
  let guarded: RealProxy;
  let squid: RealProxy;
  let secure: RealProxy;
  let dante: RealProxy;
  let known: RealProxy;

  beforeAll(async () => {
    scene = sceneOf();
    hole = createServer(() => undefined).listen(0, "127.0.0.1");
    await once(hole, "listening");
    ({ closed } = await freePorts("closed"));
    const check = Number(scene.site.host.split(":")[1]);
    [tinyproxy, refusing, guarded, squid, secure, dante, known] = await Promise.all([
      keep(startTinyproxy()),
      keep(startTinyproxy({ tunnelsTo: 443 })),
      keep(startTinyproxy({ login: "ada:sesame" })),
      keep(startSquid({ login: true, tunnelsTo: check })),
      keep(startSquid({ tls: certificateOf() })),
      keep(startDante()),
      keep(startDante({ login: true })),
    ]);
    const throughHole = (scheme: string) =>
      scene.rest("/v1/sessions", { proxy: { server: `${scheme}://${addressOf(hole)}` } });
    // Both take 10 s, so they run concurrently with the other tests.
    swallowed = Promise.all(["http", "socks5"].map(throughHole));
  }, 120_000);

  afterAll(async () => {
    for (const proxy of proxies) await proxy.stop();
    hole?.close();
  });

  const addressOf = (server: Server): string => {
    const address = server.address();
    return address !== null && typeof address === "object" ? `127.0.0.1:${address.port}` : "";
  };

  const working: [what: string, proxy: () => Record<string, string>][] = [
    ["tinyproxy", () => ({ server: `http://127.0.0.1:${tinyproxy.port}` })],
    [
      "tinyproxy with a login",
      () => ({ server: `http://127.0.0.1:${guarded.port}`, username: "ada", password: "sesame" }),
    ],
    ["squid with a login", () => ({ server: `http://127.0.0.1:${squid.port}`, ...proxyLogin })],
    ["squid over TLS", () => ({ server: `https://localhost:${secure.port}` })],
    ["dante", () => ({ server: `socks5://localhost:${dante.port}` })],
    ["dante with a login", () => ({ server: `socks5://127.0.0.1:${known.port}`, ...proxyLogin })],
  ];

  test.each(working)("a session's traffic uses %s", async (_what, proxy) => {
    const { password: _password, ...shown } = proxy();
    const { status, body } = await scene.rest("/v1/sessions", { proxy: proxy() });
    expect(status, JSON.stringify(body)).toBe(201);
    const session = `/v1/sessions/${body.id}`;
    onTestFinished(async () => void (await scene.rest(session, undefined, { method: "DELETE" })));
    expect(body.proxy).toEqual(shown);
    const page = await scene.rest(`${session}/navigate`, { url: scene.site.url("/plain.html") });
    expect(page.body).toMatchObject({ http_status: 200 });
    const { body: state } = await scene.rest(`${session}/state`);
    expect(state.egress).toMatchObject({ state: "proxied" });
    expect(state.egress.bytes_received).toBeGreaterThan(100);
    expect(state.egress.bytes_sent).toBeGreaterThan(100);
  });

  const failing: [what: string, reason: string, proxy: () => Record<string, string>][] = [
    ["a closed port", "unreachable", () => ({ server: `http://127.0.0.1:${closed}` })],
    ["an unknown name", "unreachable", () => ({ server: "socks5://proxy.invalid:1080" })],
    ["a proxy without TLS", "unreachable", () => ({ server: `https://localhost:${dante.port}` })],
    ["a certificate for another name", "unreachable", () => ({ server: `https://127.0.0.1:${secure.port}` })],
    ["a SOCKS proxy spoken to in HTTP", "unreachable", () => ({ server: `http://127.0.0.1:${dante.port}` })],
    ["tinyproxy without its login", "auth_failed", () => ({ server: `http://127.0.0.1:${guarded.port}` })],
    [
      "squid with a wrong password",
      "auth_failed",
      () => ({ server: `http://127.0.0.1:${squid.port}`, ...proxyLogin, password: "no" }),
    ],
    ["dante without its login", "auth_failed", () => ({ server: `socks5://127.0.0.1:${known.port}` })],
    [
      "dante with a wrong password",
      "auth_failed",
      () => ({ server: `socks5://127.0.0.1:${known.port}`, ...proxyLogin, password: "no" }),
    ],
    ["a proxy that refuses the tunnel", "egress_blocked", () => ({ server: `http://127.0.0.1:${refusing.port}` })],
    ["a proxy at a private address", "egress_blocked", () => ({ server: "http://127.0.0.2:3128" })],
    ["a proxy at a private address in another spelling", "egress_blocked", () => ({ server: "socks5://0x7f.2:3128" })],
  ];

  test.each(failing)("%s is reported as %s", async (_what, reason, proxy) => {
    const { status, body } = await scene.rest("/v1/sessions", { proxy: proxy() });
    expect([status, body.reason, body.detail]).toEqual([422, reason, expect.stringMatching(/^the proxy /)]);
    expect(body.type).toMatch(/\/proxy-validation-failed$/);
  });

  test("a silent proxy is reported as timeout after 10 s and does not block other sessions", async () => {
    const [http, socks] = await swallowed;
    expect([http?.status, http?.body.reason]).toEqual([422, "timeout"]);
    expect([socks?.status, socks?.body.reason]).toEqual([422, "timeout"]);
  });

  test("failed proxies create no session, and no password is stored or logged", async () => {
    const { body } = await scene.rest("/v1/sessions?limit=100");
    expect(body.data).toHaveLength(working.length);
    expect(scene.service.output()).not.toContain(proxyLogin.password);
    // Database, logs and all other files. grep exits with 1 without a match.
    expect(() => execFileSync("grep", ["-raqF", proxyLogin.password, scene.service.dataDir])).toThrow(/grep/);
    execFileSync("grep", ["-raqF", proxyLogin.username, scene.service.dataDir]);
  });
}
