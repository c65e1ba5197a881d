import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { text } from "node:stream/consumers";
import type { ProcessorRequest } from "../../src/billing/processors/transport.ts";
import { sandboxStore } from "../../src/billing/sandbox/btcpay-invoices.ts";
import { sandboxKey } from "../../src/billing/sandbox/btcpay-routes.ts";
import { createSandbox, type PaymentSandbox } from "../../src/billing/sandbox/sandbox.ts";
import type { SandboxObject } from "../../src/billing/sandbox/sandbox-store.ts";
import { clockAt } from "./clock-at.ts";
import { createMemoryStore } from "./memory-store.ts";

/** Webhook request that a processor would send. */
export interface SentNotice {
  readonly processor: "stripe" | "btcpay";
  readonly headers: Record<string, string>;
  readonly body: string;
}

/** Both payment processors on one port. Tests deliver their webhooks. */
export interface ProcessorServer extends AsyncDisposable {
  readonly url: string;
  readonly secret: string;
  readonly sandbox: PaymentSandbox;
  /** Requests received, such as `POST /v1/customers`. */
  readonly asked: string[];
  /** Complete requests received. */
  readonly requests: ProcessorRequest[];
  /** Removes and returns the webhooks since the last call. */
  notices(): SentNotice[];
  /** Returns the processor's data of an invoice. */
  invoice(id: string): Promise<SandboxObject | undefined>;
  /** Performs an action at the processor. Removes and returns the resulting webhooks. */
  act(id: string, action: string): Promise<SentNotice[]>;
  /** Replaces the response body for a path. A promise that never resolves simulates a hanging processor. */
  answer: (path: string, body: string) => string | Promise<string>;
  /** Receives the webhooks caused by a button of the processor's pages before the page responds. */
  deliver: (notice: SentNotice) => Promise<void>;
}

/** Environment of a gateway that uses this server for payments. */
export function processorEnv({ url, secret }: ProcessorServer): Record<string, string> {
  return {
    STRIPE_URL: url,
    STRIPE_SECRET_KEY: "sk_test_of_the_tests_alone",
    STRIPE_WEBHOOK_SECRET: secret,
    BTCPAY_URL: url,
    BTCPAY_STORE: sandboxStore,
    BTCPAY_API_KEY: sandboxKey,
    BTCPAY_WEBHOOK_SECRET: secret,
  };
}

export async function startProcessorServer(now: () => number): Promise<ProcessorServer> {
  const secret = "whsec_of_the_tests_alone";
  const notices: SentNotice[] = [];
  const asked: string[] = [];
  const requests: ProcessorRequest[] = [];
  const store = createMemoryStore();
  // A processor serialises the operations on an invoice.
  let last: Promise<unknown> = Promise.resolve();
  function inTurn<T>(run: () => Promise<T>): Promise<T> {
    const turn = last.then(run);
    last = turn.catch(() => undefined);
    return turn;
  }
  const server = createServer(async (request, response) => {
    const { method = "", url: path = "", headers } = request;
    asked.push(`${method} ${path.split("?", 1)[0]}`);
    const sent = Object.fromEntries(Object.entries(headers).map(([name, value]) => [name, String(value)]));
    const body = await text(request);
    const page = /^\/sandbox\/(\w+)$/.exec(path)?.[1];
    if (page !== undefined) {
      const action = new URLSearchParams(body).get("action") ?? "";
      for (const notice of await made.act(page, action)) await made.deliver(notice);
      response.end();
      return;
    }
    const transport = path.startsWith("/api/") ? sandbox.btcPay : sandbox.stripe;
    const asking = { method, path, headers: sent, body };
    requests.push(asking);
    const answer = await inTurn(() => transport(asking));
    const sentBack = await made.answer(path, answer.body);
    response.writeHead(answer.status, answer.headers).end(sentBack);
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  // Cast: a server of node:net that listens on a port.
  const { port } = server.address() as AddressInfo;
  const url = `http://127.0.0.1:${port}`;
  const sandbox = createSandbox({
    store,
    clock: clockAt(now),
    pagesUrl: `${url}/sandbox`,
    secret,
    notify: async (processor, headers, body) => void notices.push({ processor, headers, body }),
  });
  const made: ProcessorServer = {
    url,
    secret,
    sandbox,
    asked,
    requests,
    notices: () => notices.splice(0),
    answer: (_, body) => body,
    deliver: async () => undefined,
    invoice: (id) => store.get(id),
    act: (id, action) =>
      inTurn(async () => {
        const before = notices.length;
        await sandbox.act(id, action);
        return notices.splice(before);
      }),
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      server.close();
      await once(server, "close");
    },
  };
  return made;
}
