import { logVerbosity, setLogVerbosity } from "@grpc/grpc-js";
import { type App, createApp } from "../src/app.ts";
import { type Config, readConfig } from "../src/platform/config.ts";
import { ConfigError } from "../src/platform/environment.ts";
import { describeWeakness } from "../src/platform/isolation.ts";
import { keepRunning } from "../src/platform/last-resort.ts";
import { StartRefused } from "../src/platform/start-refused.ts";
import { welcome } from "./banner.ts";
import { Gateway } from "./gateway.ts";
import { type Demo, startDemo } from "./pages/demo.ts";
import { outboxPath } from "./pages/dev-mail.ts";
import { onStopSignals } from "./stop-signals.ts";

/** Starts what the environment asks for, and stops it on SIGINT or SIGTERM. A later signal does not wait. */
async function main(): Promise<void> {
  // What grpc-js writes to stderr by itself is said by whoever called it, too.
  setLogVerbosity(logVerbosity.NONE);
  const config = readConfig(process.env);
  // The demo stands on a listener of its own: no page can talk to the service from inside.
  const demo = config.embedded ? await startDemo("127.0.0.1") : undefined;
  const app = createApp(config, { egressAllow: demo ? [demo.hostPort] : [] });
  keepRunning(app.log);
  const gateway = new Gateway(app);
  let opening: Promise<void> | undefined;
  let stopping: Promise<void> | undefined;
  const stop = (): Promise<void> => {
    stopping ??= (async () => {
      // A port that is closed while it opens would be open afterwards.
      await opening?.catch(() => undefined);
      await gateway.stop();
      await app.stop();
      await demo?.stop();
    })();
    return stopping;
  };
  onStopSignals(
    process,
    () => void stop(),
    () => process.exit(130),
  );
  let tryPath = "";
  try {
    // Both at once: the documents take 0.7 s of the event loop, and no request can come before the ports are open.
    await Promise.all([config.role !== "jobs" && gateway.prepareDocuments(), app.start()]);
    if (demo && app.developerKey !== undefined)
      tryPath = gateway.offerDemo({ demoUrl: demo.url, key: app.developerKey });
    if (!stopping) {
      opening = gateway.start();
      await opening;
      await app.fleet.workerUp();
    }
  } catch (error) {
    const wasTold = stopping !== undefined;
    await stop();
    if (!wasTold) throw portInUse(error, config) ?? error;
  }
  if (demo && !stopping) process.stdout.write(firstLines(app, demo, tryPath));
}

function firstLines({ config, mailer: { outbox } }: App, { url }: Demo, tryPath: string): string {
  const { publicUrl, grpcPort, dataDir, isolation } = config;
  const weakness = describeWeakness(isolation);
  const keyFile = `${dataDir}/dev-api-key`;
  const mailsUrl = outbox && `${publicUrl}${outboxPath(outbox.key)}`;
  const tryUrl = `${publicUrl}${tryPath}`;
  const grpcAddress = `localhost:${grpcPort}`;
  return welcome({ url: publicUrl, grpcAddress, keyFile, demoUrl: url, tryUrl, mailsUrl, weakness });
}

/** Names the variable of a port that something else listens on; grpc-js tells of it in the text of its error alone. */
function portInUse(error: unknown, { port, grpcPort, internalPort }: Config): StartRefused | undefined {
  const taken = error instanceof Error ? /EADDRINUSE.*:(\d+)/.exec(error.message)?.[1] : undefined;
  const ports = { PORT: port, GRPC_PORT: grpcPort, INTERNAL_PORT: internalPort };
  const names = Object.entries(ports).flatMap(([name, value]) => (String(value) === taken ? [name] : []));
  if (names.length === 0) return undefined;
  return new StartRefused(`port ${taken} is in use: stop what listens there, or set ${names.join(" or ")}`, {
    cause: error,
  });
}

/** Says in one sentence why the service cannot run. */
function explain(error: unknown): string {
  if (error instanceof ConfigError || error instanceof StartRefused) return error.message;
  return error instanceof Error ? (error.stack ?? error.message) : String(error);
}

main().catch((error: unknown) => {
  process.stderr.write(`pilothouse: ${explain(error)}\n`);
  process.exitCode = 1;
});
