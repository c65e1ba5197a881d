import { setTimeout as delay } from "node:timers/promises";
import type { Deployment } from "../support/deployment.ts";
import type { FixtureSite } from "../support/fixture-site.ts";
import type { Answer } from "../support/rest.ts";

/** Milliseconds for which a client retries, and between retries. */
const timeout = 60_000;
const between = 250;

/** Milliseconds for which a client views a page. */
const thinking = 2_000;

/** Client that uses sessions through any gateway and retries requests that a killed process left unanswered. */
export class StormClient {
  /** Ids of all sessions that the client has received. */
  readonly ids = new Set<string>();
  readonly answers = new Map<string, number>();
  readonly #deployment: Deployment;
  readonly #site: FixtureSite;
  #turn = 0;

  constructor(deployment: Deployment, site: FixtureSite) {
    this.#deployment = deployment;
    this.#site = site;
  }

  /** Uses a number of sessions, some concurrently. Every tenth one is left to its idle timeout. */
  async run(sessions: number, atOnce: number): Promise<void> {
    let next = 0;
    const lane = async (): Promise<void> => {
      while (next < sessions) {
        next += 1;
        await this.#useSession(next % 10 === 0);
      }
    };
    await Promise.all(Array.from({ length: atOnce }, lane));
  }

  async #useSession(isAbandoned: boolean): Promise<void> {
    // If the response to a create is lost, the idle timeout ends its session.
    const created = await this.#insist("create", [201], "/v1/sessions", {
      idle_timeout_seconds: 15,
      timeout_seconds: 120,
    });
    if (!created) return;
    const session = `/v1/sessions/${created.body.id}`;
    this.ids.add(created.body.id);
    await this.#ask("navigate", `${session}/navigate`, { url: this.#site.url("/plain.html") });
    await delay(thinking);
    await this.#ask("capture", `${session}/capture`, { kind: "screenshot" });
    if (!isAbandoned) await this.#insist("destroy", [204, 410], session, undefined, { method: "DELETE" });
  }

  /** Repeats a request until the status is one of those wanted. */
  async #insist(
    what: string,
    wanted: readonly number[],
    path: string,
    body?: object,
    init?: RequestInit,
  ): Promise<Answer | undefined> {
    const deadline = performance.now() + timeout;
    while (performance.now() < deadline) {
      const answer = await this.#ask(what, path, body, init);
      if (answer && wanted.includes(answer.status)) return answer;
      await delay(between);
    }
    this.#count(`${what}: given up`);
    return undefined;
  }

  async #ask(what: string, path: string, body?: object, init?: RequestInit): Promise<Answer | undefined> {
    this.#turn += 1;
    const gateway = this.#deployment.gateway(this.#turn % this.#deployment.gateways.length);
    const signal = AbortSignal.timeout(timeout);
    const answer = await gateway.rest(path, body, { ...init, signal }).catch(() => undefined);
    const slug = answer && answer.status >= 400 ? ` ${String(answer.body.type).split("/").at(-1)}` : "";
    this.#count(`${what}: ${answer ? `${answer.status}${slug}` : "no answer"}`);
    return answer;
  }

  #count(kind: string): void {
    this.answers.set(kind, (this.answers.get(kind) ?? 0) + 1);
  }
}
