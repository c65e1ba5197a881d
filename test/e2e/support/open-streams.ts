import { once } from "node:events";
import { ConnectError, createClient, type Interceptor, type Transport } from "@connectrpc/connect";
import { createConnectTransport, createGrpcTransport } from "@connectrpc/connect-node";
import { WebSocket } from "ws";
import { ErrorInfoSchema } from "../../../src/gen/google/rpc/error_details_pb.ts";
import { SessionService } from "../../../src/gen/pilothouse/v1/session_pb.ts";
import { LiveClient } from "../../support/live-client.ts";
import { restClient } from "../../support/rest.ts";

/** Address of a gateway, and the caller's credentials. */
export interface StreamClient {
  readonly url: string;
  readonly grpcAddress: string;
  readonly key: string;
  readonly sessionId: string;
  /** Closes the streams. */
  readonly signal: AbortSignal;
}

export interface OpenStream {
  readonly transportName: string;
  /** Resolves with the slug of the problem that ended the stream. */
  readonly ended: Promise<string>;
}

type Opened = Omit<OpenStream, "transportName">;

/** Returns the number of open streams from a gateway's metrics. */
export async function countOpenStreams(internalUrl: string): Promise<number> {
  const metrics = await (await fetch(`${internalUrl}/metrics`)).text();
  return [...metrics.matchAll(/^pilothouse_open_streams\{.*\} (\d+)$/gm)].reduce(
    (sum, [, count]) => sum + Number(count),
    0,
  );
}

/** Opens Watch and Drive streams of a session on every protocol of a gateway. */
export function openEverywhere(client: StreamClient): Promise<OpenStream[]> {
  const transportNames: Record<string, () => Promise<Opened>> = {
    "Server-Sent Events": () => openEvents(client),
    WebSocket: () => openWebSocket(client),
  };
  const options = { interceptors: [bearerOf(client.key)] };
  const transports: Record<string, Transport> = {
    Connect: createConnectTransport({ ...options, baseUrl: client.url, httpVersion: "2" }),
    "gRPC on PORT": createGrpcTransport({ ...options, baseUrl: client.url }),
    "gRPC on GRPC_PORT": createGrpcTransport({ ...options, baseUrl: `http://${client.grpcAddress}` }),
  };
  for (const [transportName, transport] of Object.entries(transports)) {
    transportNames[`Watch by ${transportName}`] = () => openWatch(client, transport);
    transportNames[`Drive by ${transportName}`] = () => openDrive(client, transport);
  }
  return Promise.all(
    Object.entries(transportNames).map(async ([transportName, open]) => ({ transportName, ...(await open()) })),
  );
}

/** Watches a session by Server-Sent Events. A refusal resolves `ended` with its slug. */
export async function openEvents({ url, key, sessionId, signal }: StreamClient): Promise<Opened> {
  const headers = { authorization: `Bearer ${key}` };
  const response = await fetch(`${url}/v1/sessions/${sessionId}/events`, { headers, signal });
  if (response.status !== 200) return { ended: response.json().then(slugOf) };
  const ended = response
    .text()
    .then((text) => slugOf(JSON.parse(/^event: error\ndata: (.*)$/m.exec(text)?.[1] ?? "{}")));
  return { ended };
}

async function openWebSocket({ url, key, sessionId, signal }: StreamClient): Promise<Opened> {
  const socket = new WebSocket(`${url.replace("http", "ws")}/v1/sessions/${sessionId}/drive`, {
    headers: { authorization: `Bearer ${key}` },
  });
  signal.addEventListener("abort", () => socket.terminate(), { once: true });
  const isAnswered = Promise.withResolvers<void>();
  const ended = new Promise<string>((resolve) => {
    let slug = "none";
    socket.on("message", (data) => {
      const { id, error } = JSON.parse(data.toString());
      if (id === "1") isAnswered.resolve();
      else if (error) slug = slugOf(error);
    });
    socket.on("error", isAnswered.reject);
    socket.on("close", (code) => resolve(`${slug}${code === 1008 ? "" : ` closed with ${code}`}`));
  });
  socket.on("open", () => socket.send('{"id": "1", "state": {}}'));
  await Promise.race([isAnswered.promise, ended]);
  return { ended };
}

/** Opens CDP connections, by credential and by CDP URL. */
export function openCdpStreams(client: StreamClient): Promise<OpenStream[]> {
  const { url, key, sessionId } = client;
  const addresses: Record<string, () => Promise<string>> = {
    "CDP by the bearer": async () => `${url.replace("http", "ws")}/v1/sessions/${sessionId}/cdp`,
    "CDP by an address": async () => {
      const { body } = await restClient({ url, key })(`/v1/sessions/${sessionId}/cdp-url`, {});
      const { pathname } = new URL(body.url);
      return `${url.replace("http", "ws")}${pathname}`;
    },
  };
  return Promise.all(
    Object.entries(addresses).map(async ([transportName, find]) => ({
      transportName,
      ...(await openCdpStream(client, await find())),
    })),
  );
}

/** Opens live views, by credential and by view link. */
export function openLives(client: StreamClient): Promise<OpenStream[]> {
  const { url, key, sessionId, signal } = client;
  const keys: Record<string, () => Promise<string>> = {
    "live by the bearer": async () => key,
    "live by a view link": async () => {
      const { body } = await restClient({ url, key })(`/v1/sessions/${sessionId}/view-links`, {});
      return new URL(body.url).hash.slice(1);
    },
  };
  return Promise.all(
    Object.entries(keys).map(async ([transportName, find]) => {
      const viewer = await LiveClient.join(url, await find(), { session_id: sessionId });
      signal.addEventListener("abort", () => viewer.socket.terminate(), { once: true });
      await viewer.receive(({ hello }) => hello);
      const ended = viewer.closed.then(({ code, reason }) => {
        if (code === 1000) return "session-destroyed";
        return `${reason}${code === 1008 ? "" : ` closed with ${code}`}`;
      });
      return { transportName, ended };
    }),
  );
}

async function openCdpStream({ key, signal }: StreamClient, address: string): Promise<Opened> {
  const hasToken = address.includes("/phc_");
  const socket = new WebSocket(address, hasToken ? {} : { headers: { authorization: `Bearer ${key}` } });
  signal.addEventListener("abort", () => socket.terminate(), { once: true });
  const ended = new Promise<string>((resolve) => {
    socket.on("close", (code, reason) => resolve(`${reason}${code === 1008 ? "" : ` closed with ${code}`}`));
  });
  await once(socket, "open");
  return { ended };
}

/** No message is sent before the first event, so callers wait for the gateway's stream count. */
async function openWatch({ sessionId, signal }: StreamClient, transport: Transport): Promise<Opened> {
  const events = createClient(SessionService, transport).watch({ id: sessionId }, { signal });
  return { ended: slugOfEnd(events, () => undefined) };
}

async function openDrive({ sessionId, signal }: StreamClient, transport: Transport): Promise<Opened> {
  const isAnswered = Promise.withResolvers<void>();
  async function* commands() {
    yield { sessionId, id: "1", state: {} };
    await new Promise((resolve) => signal.addEventListener("abort", resolve, { once: true }));
  }
  const answers = createClient(SessionService, transport).drive(commands(), { signal });
  const ended = slugOfEnd(answers, ({ id }) => id === "1" && isAnswered.resolve());
  await Promise.race([isAnswered.promise, ended]);
  return { ended };
}

/** Reads a stream until it ends. Returns the slug of its error, or "none". */
async function slugOfEnd<Item>(stream: AsyncIterable<Item>, onItem: (item: Item) => void): Promise<string> {
  try {
    for await (const item of stream) onItem(item);
    return "none";
  } catch (thrown) {
    const [info] = ConnectError.from(thrown).findDetails(ErrorInfoSchema);
    return info?.reason ?? String(thrown);
  }
}

function slugOf({ type }: { type?: string }): string {
  return type?.split("/").at(-1) ?? "none";
}

function bearerOf(key: string): Interceptor {
  return (next) => (request) => {
    request.header.set("authorization", `Bearer ${key}`);
    return next(request);
  };
}
