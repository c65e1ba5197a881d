import type { Clock } from "../../platform/clock.ts";
import type { ProcessorAnswer, ProcessorRequest, Transport } from "../processors/transport.ts";
import type { SandboxObject, SandboxStore } from "./sandbox-store.ts";

/** Content of a sandbox page: a checkout, an invoice or the portal. */
export interface SandboxPage {
  readonly title: string;
  readonly lines: readonly string[];
  /** Button labels by action. */
  readonly actions: Readonly<Record<string, string>>;
  /** URL of the link back to the service. */
  readonly backUrl: string | undefined;
}

/** Sandbox implementation of a processor. */
export interface SandboxProcessor {
  readonly transport: Transport;
  /** Describes a page; undefined if its identifier is unknown. */
  page(id: string): Promise<SandboxPage | undefined>;
  /** Runs the action of a pressed button. Ignores unknown identifiers and actions. */
  act(id: string, action: string): Promise<void>;
}

/** Sends a webhook, as the processors do. */
export type Notify = (processor: "stripe" | "btcpay", headers: Record<string, string>, body: string) => Promise<void>;

export interface SandboxParts {
  readonly store: SandboxStore;
  readonly clock: Clock;
  /** Base URL of the sandbox pages, without a trailing slash. */
  readonly pagesUrl: string;
  readonly notify: Notify;
  /** Key that signs webhooks. */
  readonly secret: string;
}

/** Dependencies and functions that the payment processors of the sandbox share. */
export interface SandboxTools extends Omit<SandboxParts, "notify"> {
  readonly notify: Notify;
  nextId(prefix: string): string;
  /** Seconds since the Unix epoch. */
  seconds(): number;
  change(kind: string, object: SandboxObject, changes: SandboxObject): Promise<SandboxObject>;
}

/** Handles a request; undefined if the path is unknown. */
export type Routes = (request: ProcessorRequest & { readonly url: URL }) => Promise<SandboxObject | undefined>;

/** Thrown to send an error response. */
export class SandboxRefusal extends Error {
  readonly status: number;
  /** The body, if it differs from the processor's usual error body. */
  readonly body: unknown;

  constructor(status: number, message: string, body?: unknown) {
    super(message);
    this.status = status;
    this.body = body;
  }
}

const json = (status: number, body: unknown): ProcessorAnswer => ({
  status,
  headers: { "content-type": "application/json" },
  body: JSON.stringify(body),
});

/** Creates a transport from a request handler. */
export function transportOf(routes: Routes, refusal: (status: number, message: string) => unknown): Transport {
  return async (request) => {
    const url = new URL(request.path, "http://sandbox");
    try {
      const answer = await routes({ ...request, url });
      return answer ? json(200, answer) : json(404, refusal(404, `unknown route: ${request.method} ${url.pathname}`));
    } catch (error) {
      if (!(error instanceof SandboxRefusal)) throw error;
      return json(error.status, error.body ?? refusal(error.status, error.message));
    }
  };
}
