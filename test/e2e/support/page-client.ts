/** Script of the page of another origin, with a client of each protocol that browsers support. */
import { createClient, type Interceptor } from "@connectrpc/connect";
import { createConnectTransport, createGrpcWebTransport } from "@connectrpc/connect-web";
import { CaptureKind, SessionService } from "../../../src/gen/pilothouse/v1/session_pb.ts";

/** Address and key of the service. */
export interface ClientTarget {
  readonly url: string;
  readonly key: string;
}

/** Response headers by name, and the text to compare. */
export interface Seen {
  readonly headers: Record<string, string>;
  readonly text: string;
}

const headersOf = (headers: Headers | undefined): Record<string, string> => Object.fromEntries(headers ?? []);

async function rest({ url, key }: ClientTarget, path: string): Promise<Seen> {
  const response = await fetch(`${url}${path}`, {
    headers: { authorization: `Bearer ${key}`, "x-request-id": "from-the-page" },
  });
  return { headers: headersOf(response.headers), text: await response.text() };
}

async function rpc(protocol: "connect" | "grpc-web", { url: baseUrl, key }: ClientTarget, id: string): Promise<Seen> {
  const withBearer: Interceptor = (next) => (request) => {
    request.header.set("authorization", `Bearer ${key}`);
    return next(request);
  };
  const options = { baseUrl, interceptors: [withBearer] };
  const transport = protocol === "connect" ? createConnectTransport(options) : createGrpcWebTransport(options);
  const client = createClient(SessionService, transport);
  let headers: Headers | undefined;
  const onHeader = (received: Headers): void => {
    headers = received;
  };
  const { pages } = await client.getState({ id }, { onHeader });
  let received = 0;
  let bytes = 0;
  for await (const { header, data } of client.captureStream({ id, kind: CaptureKind.SCREENSHOT })) {
    bytes += Number(header?.bytes ?? 0);
    received += data.length;
  }
  return { headers: headersOf(headers), text: `${pages.length} page, ${received === bytes && bytes > 0}` };
}

/** Sends commands over a WebSocket. Returns all messages, the close code and the subprotocol. */
function drive(
  { url, key }: ClientTarget,
  id: string,
  commands: readonly unknown[],
): Promise<{ answers: unknown[]; code: number; protocol: string }> {
  const socket = new WebSocket(`${url.replace("http", "ws")}/v1/sessions/${id}/drive`, [
    "pilothouse.v1",
    `bearer.${key}`,
  ]);
  const answers: unknown[] = [];
  return new Promise((resolve) => {
    socket.onopen = () => {
      for (const command of [...commands, { end: true }]) {
        socket.send(JSON.stringify(command));
      }
    };
    socket.onmessage = ({ data }) => answers.push(JSON.parse(data));
    socket.onclose = ({ code }) => resolve({ answers, code, protocol: socket.protocol });
  });
}

export type PageClient = typeof client;

const client = { rest, rpc, drive };
Object.assign(globalThis, { pilothouse: client });
