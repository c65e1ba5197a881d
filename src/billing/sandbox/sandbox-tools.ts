import type { Clock } from "../../platform/clock.ts";
import type { ProcessorAnswer, ProcessorRequest, Transport } from "../processors/transport.ts";
import type { SandboxStore, Thing } from "./sandbox-store.ts";

/** What the sandbox's page shows of something that can be paid. */
export interface SandboxPage {
  readonly title: string;
  readonly lines: readonly string[];
  /** What can be done to it: the name of each, and what its button says. */
  readonly actions: Readonly<Record<string, string>>;
  /** Where the person goes afterwards. */
  readonly backUrl: string | undefined;
}

/** How the sandbox tells of what has happened, as the processors do. */
export type Notify = (processor: "stripe" | "btcpay", headers: Record<string, string>, body: string) => Promise<void>;

export interface SandboxParts {
  readonly store: SandboxStore;
  readonly clock: Clock;
  /** Where its pages are, without a slash at the end. */
  readonly pagesUrl: string;
  readonly notify: Notify;
  /** Signs what it tells. */
  readonly secret: string;
}

/** What each processor's part of the sandbox is made with. */
export interface SandboxTools extends Omit<SandboxParts, "notify"> {
  readonly notify: Notify;
  nextId(prefix: string): string;
  /** Seconds since the Unix epoch. */
  seconds(): number;
  /** Changes something, and gives it as it is then. */
  change(kind: string, thing: Thing, changes: Thing): Promise<Thing>;
}

/** Answers a request, or says that there is no such path. */
export type Routes = (request: ProcessorRequest & { readonly url: URL }) => Promise<Thing | undefined>;

/** An answer that is a refusal. */
export class SandboxRefusal extends Error {
  readonly status: number;
  /** The body, where it is not what the processor usually answers. */
  readonly body: unknown;

  constructor(status: number, message: string, body?: unknown) {
    super(message);
    this.status = status;
    this.body = body;
  }
}

const json = (status: number, body: unknown): ProcessorAnswer => ({
  ...{ status, headers: { "content-type": "application/json" }, body: JSON.stringify(body) },
});

/** Makes a transport of what answers requests. */
export function transportOf(routes: Routes, refusal: (status: number, message: string) => unknown): Transport {
  return async (request) => {
    const url = new URL(request.path, "http://sandbox");
    try {
      const answer = await routes({ ...request, url });
      return answer ? json(200, answer) : json(404, refusal(404, `there is no ${request.method} ${url.pathname}`));
    } catch (error) {
      if (!(error instanceof SandboxRefusal)) throw error;
      return json(error.status, error.body ?? refusal(error.status, error.message));
    }
  };
}
