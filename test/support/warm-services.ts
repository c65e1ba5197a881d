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

/** Services that test files share when they run one after another. */
export interface WarmServices {
  /** Directory with a file for each running service. */
  readonly directory: string;
  /** Ports of what a service reaches, by the vitest worker that runs the files. */
  readonly outsidePorts: readonly OutsidePorts[];
}

/** Ports of servers that a file may start for the service. */
export interface OutsidePorts {
  readonly sites: SitePorts;
  /** Port of the LLM provider. */
  readonly llm: number;
  /** Port of the site in CORS_ORIGINS. */
  readonly permitted: number;
}

/** Ports of the fixture site and of the file's own sites. */
export type SitePorts = readonly [fixtures: number, one: number, other: number];

/** Running service as recorded in its file. */
export interface NotedService {
  readonly pid: number;
  readonly dataDir: string;
  readonly ports: Readonly<Record<"PORT" | "GRPC_PORT" | "INTERNAL_PORT", number>>;
}

/** Reserves ports for the services, which the first file that needs one starts. Ends the services after the run. */
export default async function setUp(project: TestProject): Promise<() => Promise<void>> {
  const directory = await mkdtemp(join(tmpdir(), "warm-"));
  const workers = Array.from({ length: project.config.maxWorkers }, async () => {
    const { fixtures, one, other, ...ports } = await freePorts("fixtures", "one", "other", "llm", "permitted");
    return { sites: [fixtures, one, other] as const, ...ports };
  });
  project.provide("warmServices", { directory, outsidePorts: await Promise.all(workers) });
  return async () => {
    await Promise.all((await readdir(directory)).map((name) => end(join(directory, name))));
    await rm(directory, { recursive: true, force: true });
  };
}

/** Ends the service recorded in a file and deletes its data. */
async function end(file: string): Promise<void> {
  const { pid, dataDir }: NotedService = JSON.parse(await readFile(file, "utf8"));
  await endProcess(pid, [
    { signal: "SIGTERM", timeoutMs: 45_000 },
    { signal: "SIGKILL", timeoutMs: 10_000 },
  ]);
  await rm(dataDir, { recursive: true, force: true });
}
