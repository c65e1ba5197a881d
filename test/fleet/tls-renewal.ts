import { copyFileSync, mkdirSync, mkdtempSync, renameSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import type { FleetTlsFiles } from "../../src/platform/grpc/fleet-certificates.ts";
import { CertificateAuthority, fleetTlsVariables } from "../support/certificates.ts";
import type { Deployment } from "../support/deployment.ts";
import type { FixtureSite } from "../support/fixture-site.ts";

/** Files behind a symbolic link that each update replaces, as Kubernetes mounts a Secret. */
export class SecretMount implements Disposable {
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

/**
 * Deployment whose processes read their certificates from mounts, with two free slots on one worker, and a site that its
 * pages may reach.
 */
interface MountedScene {
  readonly deployment: Deployment;
  readonly site: FixtureSite;
  readonly mounts: Readonly<Record<"service" | "worker", SecretMount>>;
  /** Authority of the mounted certificates. */
  readonly authority: CertificateAuthority;
  /** Environment of the deployment's workers. */
  readonly workerEnv: Record<string, string>;
}

/** The last test of a deployment, because its certificates are not valid any longer. */
export function tlsRenewalTest(sceneOf: () => MountedScene): void {
  const failed = "failed to read the certificate again; the previous one stays in use";

  test("all processes use renewed certificates and another authority without ending a session", async () => {
    const { deployment, site, mounts, authority: old, workerEnv } = sceneOf();
    using renewed = new CertificateAuthority();
    const { rest, url } = deployment.gateway(0);
    const all = [...deployment.controls, ...deployment.gateways, ...deployment.workers];
    const processes = all.filter(({ exitCode }) => exitCode === null);
    /** Returns how often each process has logged a message. */
    const said = (message: string) => processes.map(({ output }) => output.split(message).length - 1);
    const once = processes.map(() => 1);
    const create = async (): Promise<string> => {
      const { status, body } = await rest("/v1/sessions", {});
      expect([status, body.detail]).toEqual([201, undefined]);
      return `/v1/sessions/${body.id}`;
    };
    const drive = async (session: string): Promise<string> =>
      (await rest(`${session}/navigate`, { url: site.url("/plain.html") })).body.title;
    // The sessions fill the worker.
    const sessions = [await create(), await create()];
    const [session = ""] = sessions;
    const headers = { authorization: `Bearer ${deployment.key}` };
    const events = await fetch(`${url}${session}/events`, { headers });

    // A secret with a broken authority.
    const broken = { ca: join(tmpdir(), `broken-${process.pid}.pem`) };
    onTestFinished(() => rmSync(broken.ca));
    writeFileSync(broken.ca, "no certificate");
    mounts.service.update({ ...old.issue("service.test"), ...broken });
    mounts.worker.update({ ...old.issue("worker.test"), ...broken });
    await expect.poll(() => said(failed), { timeout: 45_000 }).toEqual(once);
    expect(await drive(session)).toBe("Plain");

    mounts.service.update(renewed.issue("service.test"));
    mounts.worker.update(renewed.issue("worker.test"));
    await expect.poll(() => said("the certificate was replaced"), { timeout: 45_000 }).toEqual(once);
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

    for (const each of [...sessions, other])
      expect((await rest(each, undefined, { method: "DELETE" })).status).toBe(204);
    expect(await events.text()).toContain("event: session.completed");
    expect(said(failed)).toEqual(once);
  }, 240_000);
}
