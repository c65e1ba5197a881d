import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { text } from "node:stream/consumers";
import { createSandbox, type Sandbox } from "../../src/processors/sandbox/sandbox.ts";
import { createMemoryStore, type Thing } from "../../src/processors/sandbox/sandbox-store.ts";
import type { ProcessorRequest } from "../../src/processors/transport.ts";
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
}

/** Starts it. */
export async function startProcessorServer(now: () => number): Promise<ProcessorServer> {
  const secret = "whsec_of_the_tests_alone";
  const notices: SentNotice[] = [];
  const asked: string[] = [];
  const requests: ProcessorRequest[] = [];
  const store = createMemoryStore();
  const sandbox = createSandbox({
    ...{ store, clock: clockAt(now), pagesUrl: "http://localhost/sandbox", secret },
    notify: async (processor, headers, body) => void notices.push({ processor, headers, body }),
  });
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
  const made: ProcessorServer = {
    ...{ url: `http://127.0.0.1:${port}`, secret, sandbox, asked, requests, notices: () => notices.splice(0) },
    answer: (_, body) => body,
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
