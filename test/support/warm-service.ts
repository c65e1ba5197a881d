import { spawn } from "node:child_process";
import { randomUUID } from "node:crypto";
import { open, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { inject } from "vitest";
import { waitUntil } from "../../src/platform/bounded-wait.ts";
import { admin } from "./admin.ts";
import { databaseUrl, makeClusterDirectory } from "./database.ts";
import { FixtureSite } from "./fixture-site.ts";
import { freePorts } from "./free-port.ts";
import { watchForSecrets } from "./leaks.ts";
import { llmEnvOf } from "./llm-provider.ts";
import { pidOf } from "./processes.ts";
import { restClient } from "./rest.ts";
import { type Service, serviceEnv } from "./service.ts";
import type { NotedService, OutsidePorts } from "./warm-services.ts";

/** Shared service with a key of the file's own account. The file cannot end the service's processes. */
export type WarmService = Omit<Service, "supervisor" | "output" | "restart">;

/** Shared service and what its pages may reach: the fixture site and the file's own sites on two ports. */
export interface Borrowed {
  readonly service: WarmService;
  readonly site: FixtureSite;
  /** Ports of the file's own sites. Pages may reach the first one on 127.0.0.2 too. */
  readonly ports: readonly [number, number];
  /** Ports on which the service expects the LLM provider and the site in CORS_ORIGINS. */
  readonly llmPort: number;
  readonly permittedPort: number;
  /** Lines that the service printed when it was ready. */
  readonly welcome: string;
  /** Key of the service's developer account. */
  readonly developerKey: string;
}

const startMs = 60_000;

/** List of hosts that sessions of the shared service can block as advertisements. */
const adHosts = fileURLToPath(new URL("ad-hosts.txt", import.meta.url));

/**
 * Returns the service that files of this vitest worker share, with its site. The first file starts the service. `stop`
 * ends only what this file has opened.
 */
export async function borrowService(): Promise<Borrowed> {
  const { directory, outsidePorts } = inject("warmServices") ?? {};
  const worker = Number(process.env.VITEST_POOL_ID);
  const ports = outsidePorts?.[worker - 1];
  if (directory === undefined || ports === undefined) throw new Error("only the tier browser shares services");
  const [fixtures, ...own] = ports.sites;
  const site = await new FixtureSite().start(fixtures);
  const note = join(directory, `${worker}.json`);
  const noted = await readFile(note, "utf8").catch(() => undefined);
  const running: NotedService = noted === undefined ? await start(ports) : JSON.parse(noted);
  if (noted === undefined) await writeFile(note, JSON.stringify(running));
  return { site, ports: own, llmPort: ports.llm, permittedPort: ports.permitted, ...(await enter(running)) };
}

/** Starts a service that outlives this process. */
async function start({ sites, llm, permitted }: OutsidePorts): Promise<NotedService> {
  const dataDir = await makeClusterDirectory();
  const ports = await freePorts("PORT", "GRPC_PORT", "INTERNAL_PORT");
  const variables = Object.fromEntries(Object.entries(ports).map(([name, port]) => [name, String(port)]));
  const reachable = sites.flatMap((port) => [`127.0.0.1:${port}`, `localhost:${port}`]);
  const log = await open(logOf(dataDir), "w");
  const supervisor = spawn(process.execPath, ["gateway/main.ts"], {
    env: {
      ...serviceEnv(dataDir),
      ...variables,
      ...llmEnvOf(`http://127.0.0.1:${llm}`),
      EGRESS_ALLOW: [...reachable, `127.0.0.2:${sites[1]}`].join(),
      CORS_ORIGINS: `http://localhost:${permitted}`,
      EMBED_ORIGINS: "https://desk.example",
      BLOCK_LISTS: `ads=${adHosts}`,
      // A browser launched ahead of a file's last sessions would remain unused.
      WARM_BROWSERS: "0",
    },
    detached: true,
    stdio: ["ignore", log.fd, log.fd],
  });
  supervisor.unref();
  await log.close();
  return { pid: supervisor.pid ?? 0, dataDir, ports };
}

const logOf = (dataDir: string): string => join(dataDir, "service.log");

/** Returns whether a process of a service was restarted. */
async function hasRestarted(internalUrl: string): Promise<boolean> {
  const metrics = await (await fetch(`${internalUrl}/metrics`)).text();
  return /^pilothouse_process_restarts_total\{.* [1-9]/m.test(metrics);
}

/** Creates an account on a service for one file. */
async function enter({
  dataDir,
  ports,
}: NotedService): Promise<Pick<Borrowed, "service" | "welcome" | "developerKey">> {
  const internalUrl = `http://127.0.0.1:${ports.INTERNAL_PORT}`;
  const isReady = () =>
    fetch(`${internalUrl}/readyz`).then(
      ({ ok }) => ok,
      () => false,
    );
  const printed = (): Promise<string> => readFile(logOf(dataDir), "utf8");
  // The welcome is printed when the service is ready.
  const isUp = async () => (await isReady()) && (await printed()).includes("Pilothouse is ready");
  if (!(await waitUntil(isUp, { timeout: startMs, every: 50 })))
    throw new Error(`the service of this worker is not ready:\n${await printed()}`);
  const welcome = await printed();
  const database = databaseUrl(join(dataDir, "postgres", "run"));
  const account = ["--account", randomUUID(), "--tier", "enterprise"];
  const key = await admin({ DATABASE_URL: database }, "create-key", ...account);
  const url = `http://127.0.0.1:${ports.PORT}`;
  const service: WarmService = {
    url,
    internalUrl,
    key,
    dataDir,
    databaseUrl: database,
    grpcAddress: `127.0.0.1:${ports.GRPC_PORT}`,
    pidOf: (process) => pidOf(dataDir, process),
    async stop() {
      const rest = restClient({ url, key });
      for (const status of ["live", "paused"]) {
        const { body } = await rest(`/v1/sessions?status=${status}&limit=100`);
        for (const { id } of body.data) await rest(`/v1/sessions/${id}`, undefined, { method: "DELETE" });
      }
      watchForSecrets((await printed()).slice(welcome.length));
      if (!(await isReady()) || (await hasRestarted(internalUrl)))
        throw new Error(`the service ended or restarted during this file:\n${await printed()}`);
    },
  };
  return { service, welcome, developerKey: (await readFile(join(dataDir, "dev-api-key"), "utf8")).trim() };
}
