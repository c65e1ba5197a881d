import { createApp } from "../src/app.ts";
import { type Config, readConfig } from "../src/platform/config.ts";
import { ConfigError } from "../src/platform/environment.ts";
import { welcome } from "./banner.ts";
import { Gateway } from "./gateway.ts";
import { type Demo, startDemo } from "./pages/demo.ts";

/** Starts what the environment asks for, and stops it on SIGINT or SIGTERM. A second signal does not wait. */
async function main(): Promise<void> {
  const config = readConfig(process.env);
  const app = createApp(config);
  const gateway = new Gateway(app);
  // The demo stands on a listener of its own: no page can talk to the service from inside.
  const demo = config.embedded ? await startDemo("127.0.0.1") : undefined;
  if (demo) {
    app.egressAllow.push(demo.hostPort);
  }
  let stopping: Promise<void> | undefined;
  const stop = (): Promise<void> => {
    stopping ??= (async () => {
      await gateway.stop();
      await app.stop();
      await demo?.stop();
    })();
    return stopping;
  };
  for (const signal of ["SIGINT", "SIGTERM"] as const) {
    process.on(signal, () => {
      if (stopping) {
        process.exit(130);
      }
      void stop();
    });
  }
  try {
    await app.start();
    await gateway.start();
  } catch (error) {
    await stop();
    throw error;
  }
  if (demo) {
    process.stdout.write(firstLines(config, demo));
  }
}

function firstLines({ publicUrl, grpcPort, dataDir }: Config, { url }: Demo): string {
  const keyFile = `${dataDir}/dev-api-key`;
  return welcome({ url: publicUrl, grpcAddress: `localhost:${grpcPort}`, keyFile, demoUrl: url });
}

/** Says in one sentence why the service cannot run. */
function explain(error: unknown): string {
  if (error instanceof ConfigError) {
    return error.message;
  }
  if (error instanceof Error && "code" in error && error.code === "EADDRINUSE" && "port" in error) {
    return `port ${error.port} is in use: stop what listens there, or set PORT, GRPC_PORT or INTERNAL_PORT`;
  }
  return error instanceof Error ? (error.stack ?? error.message) : String(error);
}

main().catch((error: unknown) => {
  process.stderr.write(`pilothouse: ${explain(error)}\n`);
  process.exitCode = 1;
});
