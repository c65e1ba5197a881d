import { once } from "node:events";
import { createServer, IncomingMessage, ServerResponse } from "node:http";
import { connect, Socket } from "node:net";
import type { Message } from "@bufbuild/protobuf";
import { expect, onTestFinished, test, vi } from "vitest";
import { SharedStream } from "../../gateway/rest/shared-stream.ts";

test("a follower that does not read is disconnected, and the others receive every message", async () => {
  const statuses: ((message: Message) => void)[] = [];
  const broadcast = {
    listen(listener: (message: Message) => void) {
      statuses.push(listener);
      return () => void statuses.splice(statuses.indexOf(listener), 1);
    },
    [Symbol.asyncIterator]: () => expect.fail("a shared stream is listened to"),
  };
  const text = "s".repeat(64 * 1_024);
  const shared = new SharedStream(() => ({ text }));
  const followers: ServerResponse[] = [];
  const server = createServer((_request, response) => {
    followers.push(response);
    shared.follow(broadcast, response);
  }).listen(0, "127.0.0.1");
  onTestFinished(() => server.closeAllConnections());
  onTestFinished(() => void server.close());
  await once(server, "listening");
  const address = server.address();
  if (address === null || typeof address === "string") throw new Error("the server does not listen");

  const follow = () => {
    const socket = connect(address.port, "127.0.0.1");
    socket.write("GET / HTTP/1.1\r\nhost: x\r\n\r\n");
    return socket;
  };
  const [deaf, brisk] = [follow().pause(), follow()];
  deaf.on("error", () => undefined);
  let received = 0;
  brisk.on("data", (bytes) => {
    received += bytes.length;
  });
  await expect.poll(() => followers.length, { timeout: 10_000 }).toBe(2);
  let told = 0;
  for (; followers.every(({ destroyed }) => !destroyed) && told < 2_000; told += 1) {
    statuses[0]?.({ $typeName: "Status" });
    await expect.poll(() => received, { timeout: 10_000 }).toBeGreaterThan((told + 1) * text.length);
  }
  expect(followers.filter(({ destroyed }) => destroyed)).toHaveLength(1);
  statuses[0]?.({ $typeName: "Status" });
  await expect.poll(() => received, { timeout: 10_000 }).toBeGreaterThan((told + 1) * text.length);
});

test("unread responses of all followers share their bytes", () => {
  const broadcast = {
    listen(hear: (message: Message) => void) {
      hear({ $typeName: "Status" });
      return () => undefined;
    },
    [Symbol.asyncIterator]: () => expect.fail("a shared stream is listened to"),
  };
  const shared = new SharedStream(() => ({ text: "s" }));
  const request = new IncomingMessage(new Socket());
  const responses = [1, 2].map(() => new ServerResponse(request));
  const written = responses.map((response) => vi.spyOn(response, "write"));
  for (const response of responses) shared.follow(broadcast, response);
  const [first, second] = written.map(({ mock }) => mock.calls[0]?.[0]);
  expect(String(first)).toContain('{"text":"s"}');
  expect(first).toBe(second);
  expect(first).toBeInstanceOf(Buffer);
  for (const response of responses) response.emit("close");
});
