import { once } from "node:events";
import type { AddressInfo } from "node:net";
import { expect, test } from "vitest";
import { type WebSocket, WebSocketServer } from "ws";
import { Pilothouse, PilothouseConnectionError } from "../../sdk/typescript/src/index.ts";

const ended = { type: "http://x/errors/session-destroyed", title: "t", status: 410 };

/** Opens a stream to a server that answers a session by REST, and each command of the stream by a function. */
async function openDrive(answer: (socket: WebSocket, command: { readonly id: string }) => void) {
  const server = new WebSocketServer({ port: 0, host: "127.0.0.1" });
  await once(server, "listening");
  server.on("connection", (socket) => {
    socket.on("message", (data) => answer(socket, JSON.parse(String(data))));
  });
  const fetchSession = () => Promise.resolve(Response.json({ id: "ses_1" }));
  const { port } = server.address() as AddressInfo;
  const client = new Pilothouse({ apiKey: "k", baseUrl: `http://127.0.0.1:${port}`, fetch: fetchSession });
  const drive = await (await client.sessions.create()).drive();
  const stop = () => {
    for (const socket of server.clients) socket.terminate();
    server.close();
  };
  return { drive, [Symbol.dispose]: stop };
}

test("rejects commands with the problem that ended the stream", async () => {
  using opened = await openDrive((socket) => {
    socket.send(JSON.stringify({ error: ended }));
    socket.close(1008, "session-destroyed");
  });
  const both = await Promise.allSettled([opened.drive.state(), opened.drive.observe()]);
  for (const result of both) expect(result).toMatchObject({ reason: { slug: "session-destroyed", status: 410 } });
  await expect(opened.drive.state()).rejects.toMatchObject({ slug: "session-destroyed" });
});

test("rejects commands if the connection breaks, and not those that were answered", async () => {
  using opened = await openDrive((socket, { id }) => {
    if (id === "1") socket.send(JSON.stringify({ id, state: { url: "about:blank" } }));
    else socket.terminate();
  });
  const [state, page] = await Promise.allSettled([opened.drive.state(), opened.drive.goto("http://a/")]);
  expect(state).toMatchObject({ value: { url: "about:blank" } });
  expect(page).toMatchObject({ reason: expect.any(PilothouseConnectionError) });
  await opened.drive.close();
});

test("joins the parts of a capture", async () => {
  using opened = await openDrive((socket, { id }) => {
    socket.send(JSON.stringify({ id, capture: { bytes: 3 } }));
    for (const part of ["a", "bc"]) socket.send(JSON.stringify({ id, chunk: Buffer.from(part).toString("base64") }));
  });
  expect(new TextDecoder().decode(await opened.drive.screenshot())).toBe("abc");
});
