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

/** Milliseconds for the processes of a service that was told to stop. */
const goneWithin = 20_000;

/** Milliseconds in which a worker that has ended is there again on a busy machine. */
const restartWithin = 30_000;

/** Milliseconds in which a command has to be answered when the browser or the worker under it is killed. */
export const verdict = 10_000;

/** Gives an answer, and fails when it comes later than a killed process may delay it. */
export async function inTime(answer: Promise<Answer>): Promise<Answer> {
  const since = performance.now();
  const given = await answer;
  expect(performance.now() - since).toBeLessThan(verdict);
  return given;
}

/** A service whose processes a test kills, with what it needs to see that nothing of it stays. */
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

  /** Starts one, whose pages may reach a fixture site. */
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

  /** The main processes of all browsers. */
  get browsers(): ListedProcess[] {
    const { workerPid } = this;
    return descendantsOf(workerPid).filter(({ parent, command }) => parent === workerPid && /chrom/.test(command));
  }

  /** The main processes of a runtime's browsers, the oldest first. */
  browsersOf(runtime: string): ListedProcess[] {
    const isOf = ({ command }: ListedProcess) => command.includes("headless-shell") === (runtime === "headless-shell");
    // Not by their pids, which begin anew at the end of their range.
    return this.browsers.filter(isOf).toSorted((one, other) => one.startedAt - other.startedAt);
  }

  /** The browser of the only session of a runtime: the oldest, since those that are launched ahead come after it. */
  browserOfSession(runtime: string): ListedProcess {
    const [oldest] = this.browsersOf(runtime);
    if (!oldest) throw new Error(`no ${runtime} runs`);
    return oldest;
  }

  /** Calls the REST API. */
  rest(path: string, body?: unknown, init?: RequestInit): Promise<Answer> {
    return this.#rest(path, body, init);
  }

  /** Creates a session, and gives its path. */
  async create(body: object = {}): Promise<string> {
    const { status, body: session } = await this.rest("/v1/sessions", body);
    expect([status, session.status, session.detail], this.#complaints()).toEqual([201, "live", undefined]);
    this.look();
    return `/v1/sessions/${session.id}`;
  }

  /** What the worker has complained of, for whom a test fails. */
  #complaints(): string {
    const lines = readFileSync(join(this.#service.dataDir, "worker.log"), "utf8").split("\n");
    return lines.filter((line) => /"level":[456]0/.test(line)).join("\n");
  }

  /** Ends the only session of headless shell, and waits until its browser has gone: it would be taken for that of the next. */
  async destroy(session: string): Promise<void> {
    const { pid, startedAt } = this.browserOfSession("headless-shell");
    expect((await this.rest(session, undefined, { method: "DELETE" })).status).toBe(204);
    await expect.poll(() => describeProcess(pid)?.startedAt, { timeout: verdict }).not.toBe(startedAt);
  }

  /** Creates a session as soon as there is a worker for it. */
  async createEventually(): Promise<void> {
    const tryOnce = async () => {
      const { status, body } = await this.rest("/v1/sessions", {});
      return status === 201 ? body.status : `${status} ${body.type.split("/").at(-1)}`;
    };
    await expect.poll(tryOnce, { timeout: restartWithin, interval: 100 }).toBe("live");
  }

  /** Sends a command that never ends by itself, and resolves when the page has it. */
  async beginNavigation(session: string): Promise<{ answer: Promise<Answer> }> {
    const arrivals = this.site.requests.length;
    const answer = this.rest(`${session}/navigate`, { url: this.site.url("/silent"), timeout_ms: 120_000 });
    answer.catch(() => undefined);
    await expect.poll(() => this.site.requests.slice(arrivals), { timeout: 15_000 }).toContain("GET /silent");
    return { answer };
  }

  /** Records the running processes. */
  look(): void {
    this.#footprint.look();
  }

  /** Ends a process of the service the hard way, and resolves when it is gone. */
  async kill(...pids: readonly number[]): Promise<void> {
    this.look();
    for (const pid of pids) process.kill(pid, "SIGKILL");
    await expect.poll(() => pids.filter((pid) => describeProcess(pid)), { interval: 5 }).toEqual([]);
  }

  /** Kills the supervisor, alone or with others. */
  async killSupervisor(...others: readonly number[]): Promise<void> {
    const { supervisor } = this.#service;
    const exit = once(supervisor, "exit");
    await this.kill(supervisor.pid ?? 0, ...others);
    await exit;
  }

  /** Has another supervisor, which is ready to, take over from one that is killed. */
  async replaceSupervisor(): Promise<void> {
    const next = this.#service.restart();
    await this.killSupervisor();
    this.#take(await next);
  }

  /** Starts the service again on the same data and ports. */
  async restart(): Promise<void> {
    this.#take(await this.#service.restart());
  }

  #take(service: Service): void {
    this.#service = service;
    this.#rest = restClient(service);
    this.look();
  }

  /** Sends the supervisor a signal, and gives its exit code. */
  async end(signal: NodeJS.Signals = "SIGTERM"): Promise<number | null> {
    const { supervisor } = this.#service;
    const exit = once(supervisor, "exit");
    supervisor.kill(signal);
    await exit;
    return supervisor.exitCode;
  }

  /** Waits until nothing is left of the service but its data. */
  async expectGone(): Promise<void> {
    await expect.poll(() => this.#footprint.leftovers(), { timeout: goneWithin, interval: 200 }).toEqual([]);
  }

  /** Stops everything and sees that nothing stays behind. */
  async expectCleanEnd(): Promise<void> {
    this.look();
    expect(await this.end()).toBe(0);
    await this.expectGone();
  }

  /** Ends what is left, however a test has gone, and deletes the data. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.site.stop();
    for (const { pid } of this.#footprint.own) {
      try {
        process.kill(pid, "SIGKILL");
      } catch {
        // It has ended since it was listed.
      }
    }
    await waitUntil(() => this.#footprint.own.length === 0, { timeout: goneWithin, every: 20 });
    for (const directory of [this.#service.dataDir, this.#temporary]) rmSync(directory, { recursive: true });
  }

  #readPid(path: string): number {
    return Number.parseInt(readFileSync(join(this.#service.dataDir, path), "utf8"), 10);
  }
}
