import { execFile } from "node:child_process";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { connect } from "node:net";
import { createServer } from "node:tls";
import { promisify } from "node:util";
import { expect, onTestFinished, test } from "vitest";
import type { FleetTlsFiles } from "../../src/platform/grpc/fleet-certificates.ts";
import type { FixtureSite } from "../support/fixture-site.ts";
import { blocksOf } from "../support/guide-blocks.ts";
import { withLong } from "../support/long-test.ts";

/** Gateways with a worker, whose pages may reach a site. */
export interface TlsScene {
  /** Public addresses of a gateway with TLS, and of one behind a proxy that a test starts. */
  readonly secureUrl: string;
  readonly proxiedUrl: string;
  /** Port of the gateway behind the proxy. */
  readonly proxiedPort: number;
  /** Certificate of both addresses. */
  readonly files: FleetTlsFiles;
  readonly key: string;
  readonly site: FixtureSite;
}

/** Starts a proxy that terminates TLS in front of a service. */
async function startProxy(port: number, servicePort: number, files: FleetTlsFiles): Promise<void> {
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

/** Tests the guide's example for Playwright over TLS. */
export function tlsGuideTests(sceneOf: () => TlsScene): void {
  test.each(withLong(["the service's own TLS"], ["a proxy that ends TLS"]))(
    "the guide's example for Playwright works through %s",
    async (kind) => {
      const { secureUrl, proxiedUrl, proxiedPort, files, key, site } = sceneOf();
      const isOwn = kind === "the service's own TLS";
      const publicUrl = isOwn ? secureUrl : proxiedUrl;
      const { port } = new URL(publicUrl);
      if (!isOwn) await startProxy(Number(port), proxiedPort, files);
      const program = blocksOf("clients.md", "js").get("Playwright") ?? "";
      const script = `${program.replace("https://example.com/", site.url("/plain.html"))}; console.log(url);`;
      const variables = { NODE_EXTRA_CA_CERTS: files.ca, PILOTHOUSE_URL: publicUrl, PILOTHOUSE_API_KEY: key };
      const env = { ...process.env, ...variables };
      const run = promisify(execFile);
      const { stdout } = await run(process.execPath, ["--input-type=module", "-e", script], { env });
      expect(stdout).toMatch(new RegExp(`^Plain\nwss://localhost:${port}/v1/sessions/`));
    },
    90_000,
  );
}
