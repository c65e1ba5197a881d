/* Drives sessions for some seconds and prints what happened. A program of its own, because it runs in the network of the service. */
import { type ConnectError, createClient } from "@connectrpc/connect";
import { createGrpcTransport } from "@connectrpc/connect-node";
import { type Session, SessionService, SessionStatus } from "../../src/gen/pilothouse/v1/session_pb.ts";
import { restClient } from "./rest.ts";

const [url = "", key = "", seconds = "0"] = process.argv.slice(2);
const rest = restClient({ url, key });

/** Result of a run, printed as JSON. */
export interface ComposeRun {
  /** Versions that the browser reports by WebSocket. */
  readonly product: string;
  /** Number of navigations by status, or by the error of the connection. */
  readonly navigations: Readonly<Record<string, number>>;
  /** Each session's state over gRPC: `live`, or the reason for its end. */
  readonly ends: readonly string[];
}

// One after another, because sessions that are created at once may all be placed on one worker.
const ids: string[] = [];
while (ids.length < 4) {
  const { status, body } = await rest("/v1/sessions", {});
  if (status !== 201) throw new Error(`create: ${status} ${JSON.stringify(body)}`);
  ids.push(body.id);
}
console.error("driving");

const navigations: Record<string, number> = {};
const endsAt = performance.now() + Number(seconds) * 1_000;
async function drive(id: string): Promise<void> {
  while (performance.now() < endsAt) {
    const navigating = rest(`/v1/sessions/${id}/navigate`, { url: "about:blank" });
    const outcome = await navigating.then(({ status }) => String(status), String);
    navigations[outcome] = (navigations[outcome] ?? 0) + 1;
  }
}
await Promise.all(ids.map(drive));

const socket = new WebSocket(`${url.replace("http", "ws")}/connect/${key}`);
const product = await new Promise<string>((resolve, reject) => {
  socket.onopen = () => socket.send(JSON.stringify({ id: 1, method: "Browser.getVersion" }));
  socket.onmessage = ({ data }) => resolve(JSON.parse(data).result.product);
  socket.onerror = () => reject(new Error("the WebSocket failed"));
});
socket.close();

const client = createClient(SessionService, createGrpcTransport({ baseUrl: url }));
const headers = { authorization: `Bearer ${key}` };
const ends = await Promise.all(
  ids.map(async (id) => {
    const isLive = ({ status }: Session): string => (status === SessionStatus.LIVE ? "live" : `status ${status}`);
    const end = await client.get({ id }, { headers }).then(isLive, ({ rawMessage }: ConnectError) => rawMessage);
    await rest(`/v1/sessions/${id}`, undefined, { method: "DELETE" });
    return end;
  }),
);
console.log(JSON.stringify({ product, navigations, ends } satisfies ComposeRun));
