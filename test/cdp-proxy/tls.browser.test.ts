import { execFile } from "node:child_process";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { connect } from "node:net";
import { createServer } from "node:tls";
import { promisify } from "node:util";
import { afterAll, beforeAll, expect, onTestFinished, test } from "vitest";
import type { FleetTlsFiles } from "../../src/platform/grpc/fleet-certificates.ts";
import { startLendScene } from "../support/cdp-proxy-scene.ts";
import { CertificateAuthority } from "../support/certificates.ts";
import { freePorts } from "../support/free-port.ts";
import { blocksOf } from "../support/guide-blocks.ts";
import { withLong } from "../support/long-test.ts";

const run = promisify(execFile);

let authority: CertificateAuthority;
let files: FleetTlsFiles;
beforeAll(() => {
  authority = new CertificateAuthority();
  files = authority.issue("service.test");
});
afterAll(() => authority?.[Symbol.dispose]());

/** Starts a proxy that terminates TLS in front of a service. */
async function startProxy(port: number, servicePort: number): Promise<void> {
  const server = createServer({ cert: readFileSync(files.cert), key: readFileSync(files.key) }, (client) => {
    const service = connect(servicePort, "127.0.0.1");
    client.pipe(service).pipe(client);
    client.on("error", () => service.destroy());
    service.on("error", () => client.destroy());
  });
  server.listen(port, "127.0.0.1");
  await once(server, "listening");
  onTestFinished(() => void server.close());
}

test.each(withLong(["the service's own TLS"], ["a proxy that ends TLS"]))(
  "the guide's example for Playwright works through %s",
  async (kind) => {
    const ports = await freePorts("PORT", "PROXY");
    const isOwn = kind === "the service's own TLS";
    const publicUrl = `https://127.0.0.1:${isOwn ? ports.PORT : ports.PROXY}`;
    const own: Record<string, string> = isOwn ? { TLS_CERT: files.cert, TLS_KEY: files.key } : {};
    const scene = await startLendScene({ PORT: String(ports.PORT), PUBLIC_URL: publicUrl, ...own });
    onTestFinished(() => scene[Symbol.asyncDispose]());
    if (!isOwn) await startProxy(ports.PROXY, ports.PORT);
    const program = blocksOf("clients.md", "js").get("Playwright") ?? "";
    const script = `${program.replace("https://example.com/", scene.site.url("/plain.html"))}; console.log(url);`;
    const env = {
      ...process.env,
      NODE_EXTRA_CA_CERTS: files.ca,
      PILOTHOUSE_URL: publicUrl,
      PILOTHOUSE_KEY: scene.service.key,
    };
    const { stdout } = await run(process.execPath, ["--input-type=module", "-e", script], { env });
    expect(stdout).toMatch(new RegExp(`^Plain\nwss://127\\.0\\.0\\.1:${new URL(publicUrl).port}/v1/sessions/`));
  },
  90_000,
);
