import { copyFileSync, mkdirSync, mkdtempSync, renameSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import type { FleetTlsFiles } from "../../src/platform/grpc/fleet-certificates.ts";
import { CertificateAuthority, fleetTlsVariables } from "../support/certificates.ts";
import { Deployment } from "../support/deployment.ts";
import { FixtureSite } from "../support/fixture-site.ts";

/** Files behind a symbolic link that each update replaces, as Kubernetes mounts a Secret. */
class SecretMount implements Disposable {
  readonly #directory = mkdtempSync(join(tmpdir(), "secret-"));
  #updates = 0;

  get files(): FleetTlsFiles {
    const path = (file: string) => join(this.#directory, "..data", file);
    return { cert: path("cert.pem"), key: path("key.pem"), ca: path("ca.pem") };
  }

  /** Replaces all files at once. */
  update(from: FleetTlsFiles): void {
    this.#updates += 1;
    const next = join(this.#directory, `..${this.#updates}`);
    mkdirSync(next);
    for (const [name, path] of Object.entries(this.files))
      copyFileSync(from[name as keyof FleetTlsFiles], join(next, basename(path)));
    symlinkSync(next, join(this.#directory, "..next"));
    renameSync(join(this.#directory, "..next"), join(this.#directory, "..data"));
  }

  [Symbol.dispose](): void {
    rmSync(this.#directory, { recursive: true });
  }
}

const stack = new DisposableStack();
let old: CertificateAuthority;
let renewed: CertificateAuthority;
let mounts: Record<"service" | "worker", SecretMount>;
let site: FixtureSite;
let deployment: Deployment;
let workerEnv: Record<string, string>;

beforeAll(async () => {
  [old, renewed] = [stack.use(new CertificateAuthority()), stack.use(new CertificateAuthority())];
  mounts = { service: stack.use(new SecretMount()), worker: stack.use(new SecretMount()) };
  mounts.service.update(old.issue("service.test"));
  mounts.worker.update(old.issue("worker.test"));
  site = await new FixtureSite().start();
  const tls = fleetTlsVariables(mounts.worker.files);
  workerEnv = { WORKER_SLOTS: "1", WARM_BROWSERS: "0", EGRESS_ALLOW: site.host, ...tls };
  const gatewayEnv = fleetTlsVariables(mounts.service.files);
  deployment = await Deployment.start({ gateways: [{}], workers: 1, gatewayEnv, workerEnv });
}, 120_000);

afterAll(async () => {
  await deployment?.[Symbol.asyncDispose]();
  await site?.stop();
  stack.dispose();
}, 120_000);

/** Returns how often each process has logged a message. */
function said(message: string): number[] {
  const [worker] = deployment.workers;
  const processes = [deployment.control(0), deployment.gateway(0), ...(worker ? [worker] : [])];
  return processes.map(({ output }) => output.split(message).length - 1);
}

const failed = "failed to read the certificate again; the previous one stays in use";

test("all processes use renewed certificates and another authority without ending a session", async () => {
  const { rest, url } = deployment.gateway(0);
  const create = async (): Promise<string> => {
    const { status, body } = await rest("/v1/sessions", {});
    expect([status, body.detail]).toEqual([201, undefined]);
    return `/v1/sessions/${body.id}`;
  };
  const drive = async (session: string): Promise<string> =>
    (await rest(`${session}/navigate`, { url: site.url("/plain.html") })).body.title;
  const session = await create();
  const headers = { authorization: `Bearer ${deployment.key}` };
  const events = await fetch(`${url}${session}/events`, { headers });

  // A secret with a broken authority.
  const broken = { ca: join(tmpdir(), `broken-${process.pid}.pem`) };
  stack.defer(() => rmSync(broken.ca));
  writeFileSync(broken.ca, "no certificate");
  mounts.service.update({ ...old.issue("service.test"), ...broken });
  mounts.worker.update({ ...old.issue("worker.test"), ...broken });
  await expect.poll(() => said(failed), { timeout: 45_000 }).toEqual([1, 1, 1]);
  expect(await drive(session)).toBe("Plain");

  mounts.service.update(renewed.issue("service.test"));
  mounts.worker.update(renewed.issue("worker.test"));
  await expect.poll(() => said("the certificate was replaced"), { timeout: 45_000 }).toEqual([1, 1, 1]);
  expect(await drive(session)).toBe("Plain");
  // A registration, and a call of the gateway to the worker that registers.
  const second = await deployment.addWorker(workerEnv);
  await second.start();
  const other = await create();
  expect(await drive(other)).toBe("Plain");

  // Only the control process can refuse this worker, which trusts the new authority.
  const late = await deployment.addWorker({
    ...workerEnv,
    ...fleetTlsVariables({ ...old.issue("late.test"), ca: mounts.worker.files.ca }),
  });
  const started = late.start().catch(() => "refused");
  await expect.poll(() => late.output, { timeout: 45_000 }).toContain("failed to call the control process");
  expect(await late.isReady()).toBe(false);
  await late.kill();
  expect(await started).toBe("refused");

  for (const each of [session, other]) expect((await rest(each, undefined, { method: "DELETE" })).status).toBe(204);
  expect(await events.text()).toContain("event: session.completed");
  expect(said(failed)).toEqual([1, 1, 1]);
}, 240_000);
