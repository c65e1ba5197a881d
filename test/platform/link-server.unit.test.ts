import { once } from "node:events";
import { connect, type Settings } from "node:http2";
import { expect, test } from "vitest";
import { createFleetGrpcServer, listenGrpc } from "../../src/platform/grpc/fleet-grpc-server.ts";

test("a connection of the fleet link limits its concurrent calls", async () => {
  const server = createFleetGrpcServer();
  const port = await listenGrpc(server, "127.0.0.1:0");
  const session = connect(`http://127.0.0.1:${port}`);
  const [settings]: Settings[] = await once(session, "remoteSettings");
  session.destroy();
  server.forceShutdown();
  // Without a limit, grpc-js announces the largest possible number.
  expect(settings?.maxConcurrentStreams).toBe(4_096);
});
