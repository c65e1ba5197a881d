import { once } from "node:events";
import { createServer, type ServerResponse } from "node:http";
import { connect } from "node:net";
import type { Message } from "@bufbuild/protobuf";
import { expect, onTestFinished, test } from "vitest";
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
