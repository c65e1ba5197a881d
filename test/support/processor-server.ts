import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { text } from "node:stream/consumers";
import type { ProcessorRequest } from "../../src/billing/processors/transport.ts";
import { createSandbox, type Sandbox } from "../../src/billing/sandbox/sandbox.ts";
import { sandboxKey, sandboxStore } from "../../src/billing/sandbox/sandbox-btcpay.ts";
import { createMemoryStore, type Thing } from "../../src/billing/sandbox/sandbox-store.ts";
import { clockAt } from "./clock-at.ts";

/** A notice that a processor would send. */
export interface SentNotice {
  readonly processor: "stripe" | "btcpay";
  readonly headers: Record<string, string>;
  readonly body: string;
}

/** Both payment processors on a port of their own, whose notices tests deliver. */
export interface ProcessorServer extends AsyncDisposable {
  readonly url: string;
  readonly secret: string;
  readonly sandbox: Sandbox;
  /** What it has been asked, as `POST /v1/customers`. */
  readonly asked: string[];
  /** The same, whole. */
  readonly requests: ProcessorRequest[];
  /** Takes the notices since the last time. */
  notices(): SentNotice[];
  /** What it has of an invoice. */
  invoice(id: string): Promise<Thing | undefined>;
  /** Does something at the processor, and takes the notices of it. */
  act(id: string, action: string): Promise<SentNotice[]>;
  /** Changes what it answers at a path: the body of an answer; one that does not come is a processor that hangs. */
  answer: (path: string, body: string) => string | Promise<string>;
  /** Receives the notices of what is pressed on its pages, before the page answers. */
  deliver: (notice: SentNotice) => Promise<void>;
}

/** Environment of a gateway that takes payments by this server. */
export function processorEnv({ url, secret }: ProcessorServer): Record<string, string> {
  return {
    ...{ STRIPE_URL: url, STRIPE_SECRET_KEY: "sk_test_of_the_tests_alone", STRIPE_WEBHOOK_SECRET: secret },
    ...{ BTCPAY_URL: url, BTCPAY_STORE: sandboxStore, BTCPAY_API_KEY: sandboxKey, BTCPAY_WEBHOOK_SECRET: secret },
  };
}

/** Starts it. */
export async function startProcessorServer(now: () => number): Promise<ProcessorServer> {
  const secret = "whsec_of_the_tests_alone";
  const notices: SentNotice[] = [];
  const asked: string[] = [];
  const requests: ProcessorRequest[] = [];
  const store = createMemoryStore();
  // A processor does one thing after the other to one invoice.
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
  // The boundary of node:net: it listens on a port.
  const { port } = server.address() as AddressInfo;
  const url = `http://127.0.0.1:${port}`;
  const sandbox = createSandbox({
    ...{ store, clock: clockAt(now), pagesUrl: `${url}/sandbox`, secret },
    notify: async (processor, headers, body) => void notices.push({ processor, headers, body }),
  });
  const made: ProcessorServer = {
    ...{ url, secret, sandbox, asked, requests, notices: () => notices.splice(0) },
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
