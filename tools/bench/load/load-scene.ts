import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { waitUntil } from "../../../src/platform/bounded-wait.ts";
import { FixtureSite } from "../../../test/support/fixture-site.ts";
import { Footprint } from "../../../test/support/leftovers.ts";
import { descendantsOf, type ListedProcess } from "../../../test/support/process-list.ts";
import { type Rest, restClient } from "../../../test/support/rest.ts";
import { type Service, startService } from "../../../test/support/service.ts";
import { homeOf } from "../../../workers/isolation/processes.ts";

/** Milliseconds in which all resources of ended sessions must disappear. */
const goneWithin = 45_000;

/** A service under load, the site of its pages, and the checks for leaks. */
export class LoadScene {
  readonly service: Service;
  readonly site: FixtureSite;
  readonly rest: Rest;
  readonly #temporary: string;
  readonly #footprint: Footprint;

  private constructor(service: Service, site: FixtureSite, temporary: string) {
    this.service = service;
    this.site = site;
    this.rest = restClient(service);
    this.#temporary = temporary;
    this.#footprint = new Footprint(service.dataDir, temporary);
    this.look();
  }

  static async start(slots: number, more: Record<string, string> = {}): Promise<LoadScene> {
    const temporary = mkdtempSync(join(tmpdir(), "load-"));
    const site = await new FixtureSite().start();
    const env = { TMPDIR: temporary, EGRESS_ALLOW: site.host, WORKER_SLOTS: String(slots), QUEUE_MS: "60000", ...more };
    return new LoadScene(await startService(env), site, temporary);
  }

  get pids(): { readonly gateway: number; readonly worker: number; readonly postgres: number } {
    return {
      gateway: this.service.pidOf("gateway"),
      worker: this.#readPid("worker.pid"),
      postgres: this.#readPid("postgres/data/postmaster.pid"),
    };
  }

  /** Records the running processes. */
  look(): void {
    this.#footprint.look();
  }

  /** Ends all running sessions, including those of disconnected clients, and waits until no slot is held. */
  async endAll(): Promise<void> {
    const isOver = async () => {
      for (const id of await this.running()) {
        await this.rest(`/v1/sessions/${id}`, undefined, { method: "DELETE" });
      }
      return (await this.heldSlots()) === 0 && (await this.running()).length === 0;
    };
    if (await waitUntil(isOver, { timeout: goneWithin, every: 250 })) return;
    throw new Error(`${await this.heldSlots()} slots are held, and these sessions run: ${await this.running()}`);
  }

  /** Returns the ids of running sessions. */
  async running(): Promise<string[]> {
    const lists = ["provisioning", "live", "paused"].map((status) =>
      this.rest(`/v1/sessions?status=${status}&limit=100`),
    );
    return (await Promise.all(lists)).flatMap(({ body }) => body.data.map(({ id }: { id: string }) => id));
  }

  /** Returns the number of taken slots, as of the last sweep. */
  async heldSlots(): Promise<number> {
    const text = await (await fetch(`${this.service.internalUrl}/metrics`)).text();
    return Number(/^pilothouse_slots\{state="held",.*\} (\d+)/m.exec(text)?.[1] ?? Number.NaN);
  }

  /** Returns the processes of a session's browser, found by a file that the session downloads to its isolation slot. */
  async browserOf(session: string): Promise<readonly ListedProcess[]> {
    const text = `marker-${session}`;
    const url = this.site.url(`/marker?text=${encodeURIComponent(text)}`);
    await this.rest(`${session}/navigate`, { url, timeout_ms: 5_000 });
    for (let tries = 50; tries > 0; tries -= 1) {
      const all = descendantsOf(this.pids.worker);
      const found = all.find(({ pid, command }) => isMain(command) && this.#holds(homeOf(pid), text));
      if (found) return [found, ...descendantsOf(found.pid, all)];
      await delay(50);
    }
    throw new Error(`the browser of ${session} was not found`);
  }

  /** Stops the service, and returns descriptions of what is left. */
  async stop(): Promise<string[]> {
    this.look();
    await this.site.stop();
    await this.service.stop();
    await waitUntil(() => this.#footprint.leftovers().length === 0, { timeout: goneWithin, every: 250 });
    const left = this.#footprint.leftovers();
    rmSync(this.#temporary, { recursive: true, force: true });
    return left;
  }

  #readPid(path: string): number {
    return Number.parseInt(readFileSync(join(this.service.dataDir, path), "utf8"), 10);
  }

  /**
   * Returns whether a file in an isolation slot has a text. `home` is the browser's home, the directory of the slot.
   */
  #holds(home = "", text: string): boolean {
    try {
      const directory = join(this.service.dataDir, "slots", `${basename(home)}-files`, "files");
      return readdirSync(directory).some((name) => readFileSync(join(directory, name), "utf8") === text);
    } catch {
      // The slot is being cleared.
      return false;
    }
  }
}

function isMain(command: string): boolean {
  return command.includes("--remote-debugging-pipe") && !command.includes("--type=");
}
