import { writeFile } from "node:fs/promises";
import { logVerbosity, setLogVerbosity } from "@grpc/grpc-js";
import { type App, createApp } from "../../src/app/app.ts";
import { createFirstRun } from "../../src/auth/first-run.ts";
import type { Config } from "../../src/platform/config.ts";
import { describeWeakness } from "../../src/platform/isolation.ts";
import { keepRunning } from "../../src/platform/last-resort.ts";
import { createLifetime } from "../../src/platform/lifetime.ts";
import { linkToSupervisor } from "../../src/platform/process-channel.ts";
import { createServiceTraces } from "../../src/platform/traces/service-traces.ts";
import { firstRunPath, firstRunToken } from "../console/first-run-page.ts";
import { Gateway } from "../gateway.ts";
import { type Demo, startDemo } from "../pages/demo.ts";
import { outboxPath } from "../pages/dev-mail.ts";
import { welcome } from "./banner.ts";
import { runProcess } from "./run-process.ts";

/** Runs a gateway in this process. The gateway serves clients, runs background jobs, or both. */
export async function runGateway(config: Config): Promise<void> {
  // grpc-js writes errors to stderr that its callers also log.
  setLogVerbosity(logVerbosity.NONE);
  const link = linkToSupervisor();
  const begun = await link?.begun;
  if (link) await raiseOomScore();
  // The demo has its own listener, so that pages allowed to reach it cannot reach the service.
  const demo = begun && config.embedded ? await startDemo("127.0.0.1", begun.demoPort) : undefined;
  const app = createApp(config, {
    scope: "gateway",
    bus: link?.bus,
    linkSecret: begun?.linkSecret,
    egressAllow: demo ? [demo.hostPort] : [],
  });
  app.metrics.setDefaultLabels({ role: "gateway" });
  keepRunning(app.log);
  const gateway = new Gateway(app, { isSupervised: link !== undefined });
  let tryPath = "";
  let consolePath = "/console/";
  const offering = {
    async start() {
      if (demo && begun && app.developerKey !== undefined)
        tryPath = gateway.offerDemo({ demoUrl: demo.url, key: app.developerKey, linkSecret: begun.linkSecret });
      const firstRun = createFirstRun(app);
      if (!begun || !config.embedded || !(await firstRun.isOpen())) return;
      const token = firstRunToken(begun.linkSecret);
      gateway.offerFirstRun({ firstRun, token });
      consolePath = firstRunPath(token);
    },
  };
  // Also stopped if the start fails, because the listener of the demo would keep the process alive.
  const demoListener = { stop: () => demo?.stop() };
  const traces = createServiceTraces(config.traces, "gateway", app.log);
  const running = createLifetime([traces, demoListener, app, offering, gateway], app.log);
  if (!(await runProcess({ role: "gateway", log: app.log }, running))) return;
  const readiness = demo ? { demoPort: demo.port, welcome: welcomeText(app, demo, { tryPath, consolePath }) } : {};
  link?.reportReady(readiness, { isReady: () => gateway.isReady(), metrics: app.metrics });
}

/** Makes the kernel's OOM killer prefer this process over PostgreSQL, workers and the control process. */
async function raiseOomScore(): Promise<void> {
  // The file exists only on Linux.
  await writeFile("/proc/self/oom_score_adj", "500").catch(() => undefined);
}

function welcomeText(
  { config, mailer: { outbox } }: App,
  { url }: Demo,
  { tryPath, consolePath }: Record<"tryPath" | "consolePath", string>,
): string {
  const { publicUrl, grpcPort, dataDir, isolation } = config;
  const weakness = describeWeakness(isolation);
  const keyFile = `${dataDir}/dev-api-key`;
  const mailsUrl = outbox && `${publicUrl}${outboxPath(outbox.key)}`;
  const tryUrl = `${publicUrl}${tryPath}`;
  const consoleUrl = `${publicUrl}${consolePath}`;
  const grpcAddress = `localhost:${grpcPort}`;
  return welcome({ url: publicUrl, grpcAddress, keyFile, demoUrl: url, consoleUrl, tryUrl, mailsUrl, weakness });
}
