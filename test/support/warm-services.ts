import { mkdtemp, readdir, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { TestProject } from "vitest/node";
import { endProcess } from "../../src/platform/process-control.ts";
import { freePorts } from "./free-port.ts";

declare module "vitest" {
  interface ProvidedContext {
    readonly warmServices?: WarmServices;
  }
}

/** A service that files share when they run one after the other. */
export interface WarmServices {
  /** Has a file for each service that runs. */
  readonly directory: string;
  /** Ports of the sites that pages of a service may reach, by the worker of vitest that runs the files. */
  readonly sitePorts: readonly SitePorts[];
}

/** Ports of the fixture site, and of sites of a file's own. */
export type SitePorts = readonly [fixtures: number, one: number, other: number];

/** A service that runs, as it is noted in its file. */
export interface NotedService {
  readonly pid: number;
  readonly dataDir: string;
  readonly ports: Readonly<Record<"PORT" | "GRPC_PORT" | "INTERNAL_PORT", number>>;
}

/** Reserves what services are started with by the first file that needs one, and ends them after the run. */
export default async function setUp(project: TestProject): Promise<() => Promise<void>> {
  const directory = await mkdtemp(join(tmpdir(), "warm-"));
  const workers = Array.from({ length: project.config.maxWorkers }, () => freePorts("fixtures", "one", "other"));
  const sitePorts = (await Promise.all(workers)).map(({ fixtures, one, other }) => [fixtures, one, other] as const);
  project.provide("warmServices", { directory, sitePorts });
  return async () => {
    await Promise.all((await readdir(directory)).map((name) => end(join(directory, name))));
    await rm(directory, { recursive: true, force: true });
  };
}

/** Ends the service of a file, and deletes its data. */
async function end(file: string): Promise<void> {
  const { pid, dataDir }: NotedService = JSON.parse(await readFile(file, "utf8"));
  await endProcess(pid, [
    { signal: "SIGTERM", patience: 45_000 },
    { signal: "SIGKILL", patience: 10_000 },
  ]);
  await rm(dataDir, { recursive: true, force: true });
}
