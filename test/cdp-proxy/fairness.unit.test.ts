import { PassThrough } from "node:stream";
import { create } from "@bufbuild/protobuf";
import { expect, test } from "vitest";
import { type ProxyCdpRequest, ProxyCdpRequestSchema } from "../../src/gen/pilothouse/fleet/v1/fleet_pb.ts";
import { CdpConnection } from "../../workers/cdp/cdp-connection.ts";
import { Targets } from "../../workers/cdp/targets.ts";
import { CdpProxy } from "../../workers/cdp-proxy/cdp-proxy.ts";
import { EventFeed } from "../../workers/pages/event-feed.ts";

test("yields to other clients when one sends many messages at once", async () => {
  const [input, output] = [new PassThrough(), new PassThrough()];
  const connection = new CdpConnection(input, output, (error) => {
    throw error;
  });
  // The browser creates a session of the browser target for the client and sends no other response.
  input.once("data", (data) => {
    const { id } = JSON.parse(String(data).slice(0, -1));
    output.write(`{"id":${id},"result":{"sessionId":"S"}}\0`);
  });
  const proxy = new CdpProxy({
    connection,
    targets: new Targets(connection),
    feed: new EventFeed(() => undefined),
    version: "156.0.0.0",
    files: { pathOf: () => undefined },
    downloadPath: "/",
    processSettings: { has: () => false, release() {}, releaseAll() {}, restore() {} },
    restoreDevice: async () => undefined,
  });
  let turns = 0;
  let next: NodeJS.Immediate | undefined;
  const count = (): void => {
    turns += 1;
    next = setImmediate(count);
  };
  const taken = Promise.withResolvers<number>();
  async function* requests(): AsyncGenerator<ProxyCdpRequest> {
    next = setImmediate(count);
    for (let id = 1; id <= 200; id += 1) {
      const data = Buffer.from(`{"id":${id},"method":"Browser.getVersion"}`);
      yield create(ProxyCdpRequestSchema, { data, last: true });
    }
    taken.resolve(turns);
  }
  const session = { isHeld: () => false, onCommand: () => undefined };
  const answers = proxy.proxyCdp(requests(), session, new AbortController().signal);
  await answers.next();
  expect(await taken.promise).toBeGreaterThanOrEqual(15);
  clearImmediate(next);
  connection.close();
});
