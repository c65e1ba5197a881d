import { once } from "node:events";
import { onTestFinished } from "vitest";
import { type RawData, WebSocket, WebSocketServer } from "ws";

/** Relay in front of a CDP address that records a client's methods. */
export interface CdpRecorder {
  /** URL for clients. */
  readonly url: string;
  /** Methods of the sent commands. */
  readonly methods: ReadonlySet<string>;
}

/** Starts a relay to a CDP address. The relay ends with the test. */
export async function recordCdp(target: string): Promise<CdpRecorder> {
  const methods = new Set<string>();
  const server = new WebSocketServer({ host: "127.0.0.1", port: 0 });
  server.on("connection", (client) => {
    const browser = new WebSocket(target, { maxPayload: 200 * 2 ** 20 });
    const opened = once(browser, "open").then(() => true);
    opened.catch(() => client.terminate());
    client.on("message", async (data: RawData) => {
      const text = data.toString();
      methods.add(JSON.parse(text).method);
      if (await opened.catch(() => false)) browser.send(text);
    });
    browser.on("message", (data) => client.send(data.toString()));
    client.on("close", () => browser.terminate());
    browser.on("close", () => client.close());
    for (const socket of [client, browser]) socket.on("error", () => undefined);
  });
  onTestFinished(() => {
    for (const client of server.clients) client.terminate();
    server.close();
  });
  await once(server, "listening");
  const address = server.address();
  if (typeof address !== "object" || address === null) throw new Error("the relay listens on no port");
  return { url: `ws://127.0.0.1:${address.port}/`, methods };
}
