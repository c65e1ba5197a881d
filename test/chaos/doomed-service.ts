import { once } from "node:events";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect } from "vitest";
import { waitUntil } from "../../src/platform/bounded-wait.ts";
import { FixtureSite } from "../support/fixture-site.ts";
import { Footprint } from "../support/leftovers.ts";
import { descendantsOf, describeProcess, type ListedProcess } from "../support/process-list.ts";
import { type Answer, type Rest, restClient } from "../support/rest.ts";
import { type Service, startService } from "../support/service.ts";

/** Milliseconds until all processes of a stopped service have exited. */
const goneWithin = 20_000;

/** Milliseconds until a worker has restarted on a busy machine. */
const restartWithin = 30_000;

/** Milliseconds until a command must be answered when its browser or worker is killed. */
export const verdict = 10_000;

/** Returns a response. Fails if it is later than a killed process may delay it. */
export async function inTime(answer: Promise<Answer>): Promise<Answer> {
  const since = performance.now();
  const given = await answer;
  expect(performance.now() - since).toBeLessThan(verdict);
  return given;
}

/** Service whose processes a test kills, with checks for leftovers. */
export class DoomedService {
  readonly site: FixtureSite;
  readonly #temporary: string;
  readonly #footprint: Footprint;
  #service: Service;
  #rest: Rest;

  private constructor(service: Service, site: FixtureSite, temporary: string) {
    this.#service = service;
    this.#rest = restClient(service);
    this.site = site;
    this.#temporary = temporary;
    this.#footprint = new Footprint(service.dataDir, temporary);
    this.look();
  }

  /** Starts a service whose pages may reach a fixture site. */
  static async start(env: Record<string, string> = {}, directory?: string): Promise<DoomedService> {
    const temporary = mkdtempSync(join(tmpdir(), "chaos-"));
    const site = await new FixtureSite().start();
    const ground = { TMPDIR: temporary, EGRESS_ALLOW: site.host, WORKER_SLOTS: "6" };
    try {
      return new DoomedService(await startService({ ...ground, ...env }, directory), site, temporary);
    } catch (error) {
      await site.stop();
      throw error;
    }
  }

  get service(): Service {
    return this.#service;
  }

  get postmasterPid(): number {
    return this.#readPid("postgres/data/postmaster.pid");
  }

  get workerPid(): number {
    return this.#readPid("worker.pid");
  }

  /** Main processes of all browsers. */
  get browsers(): ListedProcess[] {
    const { workerPid } = this;
    return descendantsOf(workerPid).filter(({ parent, command }) => parent === workerPid && /chrom/.test(command));
  }

  /** Main processes of a runtime's browsers, oldest first. */
  browsersOf(runtime: string): ListedProcess[] {
    const isOf = ({ command }: ListedProcess) => command.includes("headless-shell") === (runtime === "headless-shell");
    // Not by pid, because pids wrap around.
    return this.browsers.filter(isOf).toSorted((one, other) => one.startedAt - other.startedAt);
  }

  /** Browser of the only session of a runtime: the oldest, because browsers are launched ahead after it. */
  browserOfSession(runtime: string): ListedProcess {
    const [oldest] = this.browsersOf(runtime);
    if (!oldest) throw new Error(`no ${runtime} runs`);
    return oldest;
  }

  rest(path: string, body?: unknown, init?: RequestInit): Promise<Answer> {
    return this.#rest(path, body, init);
  }

  /** Creates a session and returns its path. */
  async create(body: object = {}): Promise<string> {
    const { status, body: session } = await this.rest("/v1/sessions", body);
    expect([status, session.status, session.detail], this.#complaints()).toEqual([201, "live", undefined]);
    this.look();
    return `/v1/sessions/${session.id}`;
  }

  /** Returns the worker's errors for the message of a failed test. */
  #complaints(): string {
    const lines = readFileSync(join(this.#service.dataDir, "worker.log"), "utf8").split("\n");
    return lines.filter((line) => /"level":[456]0/.test(line)).join("\n");
  }

  /**
   * Destroys the only headless shell session and waits for its browser's exit, so that the next browser is the oldest.
   */
  async destroy(session: string): Promise<void> {
    const { pid, startedAt } = this.browserOfSession("headless-shell");
    expect((await this.rest(session, undefined, { method: "DELETE" })).status).toBe(204);
    await expect.poll(() => describeProcess(pid)?.startedAt, { timeout: verdict }).not.toBe(startedAt);
  }

  /** Creates a session as soon as a worker is available, and returns its path. */
  async createEventually(): Promise<string> {
    let path = "";
    const tryOnce = async () => {
      const { status, body } = await this.rest("/v1/sessions", {});
      path = `/v1/sessions/${body.id}`;
      return status === 201 ? body.status : `${status} ${body.type.split("/").at(-1)}`;
    };
    await expect.poll(tryOnce, { timeout: restartWithin, interval: 100 }).toBe("live");
    return path;
  }

  /** Sends a navigation that never completes. Resolves when the site has received its request. */
  async beginNavigation(session: string): Promise<{ answer: Promise<Answer> }> {
    const arrivals = this.site.requests.length;
    const answer = this.rest(`${session}/navigate`, { url: this.site.url("/silent"), timeout_ms: 120_000 });
    answer.catch(() => undefined);
    await expect.poll(() => this.site.requests.slice(arrivals), { timeout: 15_000 }).toContain("GET /silent");
    return { answer };
  }

  look(): void {
    this.#footprint.look();
  }

  /** Kills processes of the service with SIGKILL and waits until they are gone. */
  async kill(...pids: readonly number[]): Promise<void> {
    this.look();
    for (const pid of pids) process.kill(pid, "SIGKILL");
    await expect.poll(() => pids.filter((pid) => describeProcess(pid)), { interval: 5 }).toEqual([]);
  }

  /** Kills the supervisor and optionally other processes. */
  async killSupervisor(...others: readonly number[]): Promise<void> {
    const { supervisor } = this.#service;
    const exit = once(supervisor, "exit");
    await this.kill(supervisor.pid ?? 0, ...others);
    await exit;
  }

  /** Kills the supervisor after a standby supervisor has started, which takes over. */
  async replaceSupervisor(): Promise<void> {
    const next = this.#service.restart();
    await this.killSupervisor();
    this.#take(await next);
  }

  async restart(): Promise<void> {
    this.#take(await this.#service.restart());
  }

  #take(service: Service): void {
    this.#service = service;
    this.#rest = restClient(service);
    this.look();
  }

  /** Sends the supervisor a signal and returns its exit code. */
  async end(signal: NodeJS.Signals = "SIGTERM"): Promise<number | null> {
    const { supervisor } = this.#service;
    const exit = once(supervisor, "exit");
    supervisor.kill(signal);
    await exit;
    return supervisor.exitCode;
  }

  /** Waits until only the data of the service is left. */
  async expectGone(): Promise<void> {
    await expect.poll(() => this.#footprint.leftovers(), { timeout: goneWithin, interval: 200 }).toEqual([]);
  }

  /** Stops the service and expects it to leave nothing behind. */
  async expectCleanEnd(): Promise<void> {
    this.look();
    expect(await this.end()).toBe(0);
    await this.expectGone();
  }

  /** Kills all remaining processes and deletes the data. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.site.stop();
    for (const { pid } of this.#footprint.own) {
      try {
        process.kill(pid, "SIGKILL");
      } catch {
        // The process has exited since it was listed.
      }
    }
    await waitUntil(() => this.#footprint.own.length === 0, { timeout: goneWithin, every: 20 });
    for (const directory of [this.#service.dataDir, this.#temporary]) rmSync(directory, { recursive: true });
  }

  #readPid(path: string): number {
    return Number.parseInt(readFileSync(join(this.#service.dataDir, path), "utf8"), 10);
  }
}
