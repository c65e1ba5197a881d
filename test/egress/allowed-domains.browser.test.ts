import { once } from "node:events";
import { createServer, type Server } from "node:http";
import { createServer as createTcpServer } from "node:net";
import { afterAll, beforeAll, expect, test, vi } from "vitest";
import { runtimes } from "../support/runtimes.ts";
import { WorkerUnderTest } from "../support/worker-under-test.ts";

/** A page that tries every way to connect to a forbidden host, also by a redirect. */
const hostile = (outside: string) => `<!DOCTYPE html><title>Hostile</title>
  <button id=popup onclick="open('${outside}/popup')">Popup</button>
  <a id=link href="${outside}/link">Link</a> <a id=redirect href="/redirect">Redirect</a>
  <form id=form action="${outside}/form" method=post><button id=send>Send</button></form>
  <iframe src="${outside}/frame"></iframe><img src="${outside}/image"><link rel=preconnect href="${outside}">
  <link rel=prefetch href="${outside}/prefetch"><script>
    fetch("${outside}/fetch", { mode: "no-cors" }).catch(() => 0).finally(() => (document.title = "tried"));
    navigator.sendBeacon("${outside}/beacon", "x");
    new WebSocket("${outside.replace("http", "ws")}/socket");
    new EventSource("${outside}/events");
  </script>`;

const port = (server: { address(): unknown }) => (server.address() as { port: number }).port;

let site: Server;
let worker: WorkerUnderTest;
/** Number of connections to the forbidden host. */
let received = 0;
const outside = createTcpServer((socket) => {
  received += 1;
  socket.end();
});

beforeAll(async () => {
  outside.listen(0, "127.0.0.1");
  await once(outside, "listening");
  const there = `http://outside.test:${port(outside)}`;
  site = createServer(({ url }, response) => {
    if (url === "/redirect") response.writeHead(302, { location: `${there}/redirected` }).end();
    else response.writeHead(200, { "content-type": "text/html" }).end(hostile(there));
  });
  site.listen(0, "127.0.0.1");
  await once(site, "listening");
  const allow = [`www.inside.test:${port(site)}`, `outside.test:${port(outside)}`];
  worker = await WorkerUnderTest.start(allow, { resolve: async () => [{ address: "127.0.0.1", family: 4 }] });
});

afterAll(async () => {
  await worker?.stop();
  site?.close();
  site?.closeAllConnections();
  outside.close();
});

const tap = (selector: string) => ({ action: { case: "tap" as const, value: { selector } } });

test.each(runtimes)("keeps a page in %s within its allowed domains", async (runtime) => {
  const session = await worker.open({ runtime }, 1n, "", undefined, ["*.inside.test"]);
  const home = `http://www.inside.test:${port(site)}/`;
  await session.navigate({ url: home });
  await vi.waitUntil(async () => (await session.state()).title === "tried", { timeout: 10_000 });
  for (const id of ["popup", "link", "redirect", "send"]) {
    await session.interact(tap(`#${id}`));
    await session.navigate({ url: home });
  }
  for (const url of [
    `http://outside.test:${port(outside)}/`,
    `${home}redirect`,
    "http://inside.test/",
    "http://8.8.8.8/",
  ]) {
    await expect(session.navigate({ url })).rejects.toMatchObject({
      slug: "driver-error",
      extensions: { blocked_by: "egress" },
      detail: expect.stringContaining("is not an allowed host of this session"),
    });
  }
  expect((await session.state()).egress?.refused).toContain(`outside.test:${port(outside)}`);
  await session.destroy();
  expect(received).toBe(0);
});

test("reaches a host that is an allowed domain", async () => {
  const session = await worker.open({}, 1n, "", undefined, ["outside.test"]);
  await session.navigate({ url: `http://outside.test:${port(outside)}/` }).catch(() => undefined);
  await session.destroy();
  expect(received).toBeGreaterThan(0);
});
